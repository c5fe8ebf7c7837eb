"""Coverage rows in SQL: one per run, slice and name; only what changed is written and chained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, insert, or_, select, update

from ringfence.connector import chain
from ringfence.connector.runs import Writer
from ringfence.connector.store import Store
from ringfence.connector.tables import audit_mark, coverage

MOVING = ("class", "group")
"""Slices that stand at a model's last run alone."""

Rows = Sequence[dict[str, Any]]


def record_coverage(writer: Writer, rows: Rows) -> tuple[list[dict[str, Any]], list[Row[Any]]]:
    """Write the rows that are new or different; return those, and stored rows that went."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        before = {_id(row._mapping): row for row in _stored(connection, project)}
        changed = [
            {**row, "project": project, "audited_ns": now}
            for row in rows
            if not _same(before.get(_id(row)), row)
        ]
        wanted = {_id(row) for row in rows}
        gone = [row for key, row in before.items() if key not in wanted and row.slice in MOVING]
        _remove(connection, project, [_id(row) for row in changed])
        _remove(connection, project, [_id(row._mapping) for row in gone])
        if changed:
            connection.execute(insert(coverage), changed)
            chain.append(connection, project, writer.key, "audited", {"coverage": changed})
        _mark(connection, project, audited_ns=now)
    return changed, gone


def stored(store: Store, project: str) -> list[Row[Any]]:
    """Return all coverage rows, oldest run first."""
    with store.reading() as connection:
        return _stored(connection, project)


def mark_of(store: Store, project: str) -> Row[Any] | None:
    """Return how far the audit has come; None before the first one."""
    with store.reading() as connection:
        return connection.execute(select(audit_mark).where(audit_mark.c.project == project)).first()


def set_mark(writer: Writer, **values: Any) -> None:
    """Move parts of the mark, in a transaction of their own."""
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        _mark(connection, writer.lease.project, audited_ns=now, **values)


def _mark(connection: Connection, project: str, **values: Any) -> None:
    done = connection.execute(
        update(audit_mark).where(audit_mark.c.project == project).values(**values)
    )
    if done.rowcount == 0:
        fresh = {"project": project, "grouped_seq": 0} | values
        connection.execute(insert(audit_mark).values(**fresh))


def _stored(connection: Connection, project: str) -> list[Row[Any]]:
    query = (
        select(coverage)
        .where(coverage.c.project == project)
        .order_by(coverage.c.seq, coverage.c.slice, coverage.c.name)
    )
    return list(connection.execute(query))


def _id(row: Any) -> tuple[int, str, str]:
    return row["seq"], row["slice"], row["name"]


def _same(before: Row[Any] | None, row: dict[str, Any]) -> bool:
    if before is None:
        return False
    return all(before._mapping[name] == value for name, value in row.items())


def _remove(connection: Connection, project: str, ids: list[tuple[int, str, str]]) -> None:
    for start in range(0, len(ids), 100):
        some = [
            and_(coverage.c.seq == seq, coverage.c.slice == slice_, coverage.c.name == name)
            for seq, slice_, name in ids[start : start + 100]
        ]
        connection.execute(delete(coverage).where(coverage.c.project == project, or_(*some)))
