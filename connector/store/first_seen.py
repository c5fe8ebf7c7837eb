"""When nodes were first seen, for graphs without creation times.

The mirror has the same times, and is a cache; a rebuilt one asks here, so that delays, windows and
half-lives stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import insert, select

from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import first_seen
from ringfence.connector.store.writer import Writer


def record_first_seen(writer: Writer, times: Mapping[str, int]) -> None:
    """Write when a run saw nodes first; a node that is on record keeps its time."""
    project = writer.lease.project
    for part in split(sorted(times)):
        known = find_first_seen(writer.store, project, part)
        rows = [
            {"project": project, "node_key": key, "seen_ns": times[key]}
            for key in part
            if key not in known
        ]
        if rows:
            with writer.store.transaction() as connection:
                writer.begin(connection)
                connection.execute(insert(first_seen), rows)


def find_first_seen(store: Store, project: str, keys: Sequence[str]) -> dict[str, int]:
    """Return when those of `keys` that are on record were first seen."""
    found: dict[str, int] = {}
    for part in split(keys):
        query = select(first_seen.c.node_key, first_seen.c.seen_ns).where(
            first_seen.c.project == project, first_seen.c.node_key.in_(part)
        )
        with store.reading() as connection:
            found.update((row.node_key, row.seen_ns) for row in connection.execute(query))
    return found
