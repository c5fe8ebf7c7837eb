"""The chain's entries of some kinds, read in one pass that checks the whole chain on its way."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain import keyless
from ringfence.connector.store.audit_chain.digests import first_changed
from ringfence.connector.store.audit_chain.preflight_check import refuse_difference
from ringfence.connector.store.tables import audit

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SealedEntries:
    """Bodies by kind, oldest first; `broken` is the first entry that does not fit the chain.

    begun_now: whether the first entry is of a version that seals marks and states from the start.
    """

    by_kind: Mapping[str, Sequence[Body]]
    broken: int | None = None
    begun_now: bool = True

    def of_kind(self, kind: str) -> Sequence[Body]:
        """Return the bodies of a kind that was asked for."""
        return self.by_kind.get(kind, ())


def read_sealed(
    connection: Connection, project: str, key: bytes, kinds: Collection[str]
) -> SealedEntries:
    """Return the entries of some kinds; every entry is checked, only these are parsed."""
    columns = audit.c.n, audit.c.body, audit.c.prev, audit.c.hash
    query = select(*columns).where(audit.c.project == project).order_by(audit.c.n)
    rows = connection.execute(query).all()
    broken = _broken_entry(rows, key)
    by_kind: dict[str, list[Body]] = {kind: [] for kind in kinds}
    marks = {kind: f'"kind":"{kind}"' for kind in kinds}
    for row in rows if broken is None else ():
        kind = next((kind for kind, mark in marks.items() if mark in row.body), None)
        if kind is not None:
            body = json.loads(row.body)
            if (body["n"], body["project"]) != (row.n, project):
                return SealedEntries({}, row.n)
            by_kind[kind].append(body)
    begun_now = not rows or f'"{keyless.FIELD}":' in rows[0].body
    return SealedEntries(by_kind, broken, begun_now)


def require_sealed(
    connection: Connection, project: str, key: bytes, kinds: Collection[str]
) -> SealedEntries:
    """Return the entries of some kinds; raise `StoreError` where the chain is broken."""
    sealed = read_sealed(connection, project, key, kinds)
    if sealed.broken is not None:
        refuse_difference(f"the audit chain is broken at entry {sealed.broken}")
    return sealed


def _broken_entry(rows: Sequence[Any], key: bytes) -> int | None:
    """The first entry that is missing, follows another one, or does not fit its seal."""
    start = max((i for i, row in enumerate(rows) if chain.REKEYED_MARK in row.body), default=0)
    prev = ""
    for place, row in enumerate(rows):
        if row.n != place + 1 or row.prev != prev:
            return place + 1
        if place >= start and not chain.fits(row, key):
            return int(row.n)
        prev = row.hash
    return first_changed(rows[:start], json.loads(rows[start].body)) if start else None
