"""How far audits have come, compared with its seal as it is read.

A mark that is ahead for one audit makes it pass over classes or groups, and the mark that it leaves
would be sealed: nothing would look wrong afterwards.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from ringfence.connector.records import AuditMark
from ringfence.connector.store.audit_chain.preflight_check import refuse_difference
from ringfence.connector.store.audit_chain.sealed_entries import require_sealed
from ringfence.connector.store.coverage import NO_MARK, mark_facts
from ringfence.connector.store.rows import audit_mark_from_row
from ringfence.connector.store.tables import audit_mark

KIND = "marked"


def mark_on_record(connection: Connection, project: str, key: bytes) -> AuditMark | None:
    """Return the audit's mark, None before the first audit; raise `StoreError` where it differs.

    Older versions sealed none: a record that one of them began is taken as it is until an audit of
    a later version has sealed its mark.
    """
    sealed = require_sealed(connection, project, key, (KIND,))
    bodies = sealed.of_kind(KIND)
    query = select(audit_mark).where(audit_mark.c.project == project)
    row = connection.execute(query).first()
    if row is None:
        if bodies:
            refuse_difference("audit_mark: the project's row is gone")
        return None
    if bodies or sealed.begun_now:
        left = bodies[-1] if bodies else NO_MARK
        for name, value in mark_facts(row).items():
            if left.get(name) != value:
                last = left.get(name)
                refuse_difference(f"audit_mark: {name} is {value}, but the last audit left {last}")
    return audit_mark_from_row(row)
