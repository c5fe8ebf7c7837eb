"""Corrections of calibration nodes against the chain, by model and by the time of the notice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ringfence.connector.records import StoredCorrection
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.corrections import KIND, all_corrections, corrections_digest

Block = tuple[str, int]
"""Model version and time of the notice: what one chain entry is about."""

MAX_NAMED_NODES = 5


def find_correction_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield the blocks of corrections that are not as the chain has them."""
    recorded = {(body["version"], body["noticed_ns"]): body for body in record.bodies(KIND)}
    stored = _blocks(all_corrections(reader.connection, reader.project))
    for block in sorted({*recorded, *stored}):
        version, noticed_ns = block
        where, rows = f"correction of {version} noticed at {noticed_ns}", stored.get(block, [])
        if block not in recorded:
            keys = ", ".join(row.node_key for row in rows[:MAX_NAMED_NODES])
            yield f"{where}: rows that nobody recorded ({keys})"
        elif len(rows) != recorded[block]["nodes"]:
            yield f"{where}: {len(rows)} rows, but {recorded[block]['nodes']} were recorded"
        elif corrections_digest(rows) != recorded[block]["rows"]:
            yield f"{where}: node_key, was, label or reason of some of {len(rows)} rows changed"


def _blocks(rows: list[StoredCorrection]) -> dict[Block, list[StoredCorrection]]:
    def block_of(row: StoredCorrection) -> Block:
        return row.version, row.noticed_ns

    return {block: list(part) for block, part in groupby(sorted(rows, key=block_of), block_of)}
