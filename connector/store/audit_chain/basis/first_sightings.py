"""When nodes were first seen, compared with the chain before a run takes the times over.

A time decides in which order nodes came, and how late a class is; in a graph without creation times
nothing else says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection

from ringfence.connector.store.audit_chain.keys import KeySource, current_key
from ringfence.connector.store.audit_chain.preflight_check import refuse_difference
from ringfence.connector.store.audit_chain.sealed_entries import Body, require_sealed
from ringfence.connector.store.engine import Store
from ringfence.connector.store.first_seen import KIND, keys_digest, nodes_by_time

MAX_NAMED_NODES = 5


class FirstSightings:
    """The times of a project's nodes, read whole and compared when they are first asked for.

    A node that is recorded later is not among them: its run knows its time.
    """

    def __init__(self, store: Store, project: str, key_source: KeySource) -> None:
        self.store, self.project, self.key_source = store, project, key_source
        self._times: dict[str, int] | None = None

    def __call__(self, keys: Sequence[str]) -> dict[str, int]:
        """Return when those of `keys` that are on record were first seen."""
        if self._times is None:
            self._times = self._read()
        times = self._times
        return {key: times[key] for key in keys if key in times}

    def _read(self) -> dict[str, int]:
        with self.store.at_one_moment() as store, store.reading() as connection:
            key = current_key(connection, self.project, self.key_source)
            stored = sightings_on_record(connection, self.project, key)
        return {node: seen_ns for seen_ns, nodes in stored.items() for node in nodes}


def sightings_on_record(
    connection: Connection, project: str, key: bytes
) -> Mapping[int, Sequence[str]]:
    """Return all nodes on record by the time of their first sighting; raise where some differ.

    Older versions sealed none: their times are taken as they are until a run sees a new node.
    """
    sealed = require_sealed(connection, project, key, (KIND,))
    stored = nodes_by_time(connection, project)
    bodies = sealed.of_kind(KIND)
    if bodies or sealed.begun_now:
        for difference in find_sighting_differences(bodies, stored):
            refuse_difference(difference)
    return stored


def find_sighting_differences(
    bodies: Iterable[Body], stored: Mapping[int, Sequence[str]]
) -> Iterator[str]:
    """Yield the times whose nodes are not those on record; the newest entry about a time counts."""
    recorded = {body["seen_ns"]: body for body in bodies}
    for seen_ns in sorted({*recorded, *stored}):
        where, keys = f"first_seen at {seen_ns}", stored.get(seen_ns, [])
        if seen_ns not in recorded:
            named = ", ".join(sorted(keys)[:MAX_NAMED_NODES])
            yield f"{where}: rows that no run recorded ({named})"
        elif len(keys) != recorded[seen_ns]["nodes"]:
            count = recorded[seen_ns]["nodes"]
            yield f"{where}: {len(keys)} rows, but {count} were recorded"
        elif keys_digest(keys) != recorded[seen_ns]["rows"]:
            yield f"{where}: node_key of some of {len(keys)} rows changed"
