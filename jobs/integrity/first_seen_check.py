"""When nodes were first seen, against the chain: it has an entry for each such time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ringfence.connector.store.audit_chain.basis.first_sightings import find_sighting_differences
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.first_seen import KIND, nodes_by_time


def find_first_seen_edits(
    reader: RecordReader, record: AuditRecord, times: Collection[int] | None = None
) -> Iterator[str]:
    """Yield the times whose nodes are not those on record.

    With `times` only these are compared.

    A store of the version that sealed none of it has no such entry, until a run sees a new node.
    """
    bodies = list(record.bodies(KIND))
    if bodies:
        wanted = None if times is None else sorted(times)
        stored = nodes_by_time(reader.connection, reader.project, wanted)
        asked = [body for body in bodies if times is None or body["seen_ns"] in times]
        yield from find_sighting_differences(asked, stored)
