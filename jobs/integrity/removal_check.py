"""Runs whose details retention removed, against the chain: what was removed has an entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.retention.removals import KIND, read_removals


def find_removal_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield the rows about removed details that are not as the chain has them.

    Details that are gone without an entry are found where predictions are compared.
    """
    recorded = {removed["seq"]: removed for body in record.bodies(KIND) for removed in body["runs"]}
    removals = read_removals(reader.connection, reader.project)
    stored = {removal.seq: asdict(removal) for removal in removals}
    for seq in sorted({*recorded, *stored}):
        where = f"removal of run {seq}"
        if seq not in stored:
            yield f"{where}: the row is gone"
        elif seq not in recorded:
            yield f"{where}: the row was never recorded"
        elif changed := [n for n, value in stored[seq].items() if recorded[seq].get(n) != value]:
            yield f"{where}: {', '.join(changed)} changed"
