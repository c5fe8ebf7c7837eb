"""When nodes were first seen, against the chain: it has an entry for each such time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.first_seen import KIND, keys_digest, nodes_by_time

MAX_NAMED_NODES = 5


def find_first_seen_edits(
    reader: RecordReader, record: AuditRecord, times: Collection[int] | None = None
) -> Iterator[str]:
    """Yield the times whose nodes are not those on record; the newest entry about a time counts.

    With `times` only these are compared.

    A store of the version that sealed none of it has no such entry, until a run sees a new node.
    """
    recorded = {body["seen_ns"]: body for body in record.bodies(KIND)}
    if not recorded:
        return
    if times is not None:
        recorded = {seen_ns: body for seen_ns, body in recorded.items() if seen_ns in times}
    wanted = None if times is None else sorted(times)
    stored = nodes_by_time(reader.connection, reader.project, wanted)
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
