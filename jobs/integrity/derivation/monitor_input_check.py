"""What runs fed their exchangeability monitor with, against the digests in their entries."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.calibration.run_basis import FIELD, NOTHING_FED, read_inputs


def find_monitor_input_edits(
    reader: RecordReader, record: AuditRecord, seqs: Collection[int] | None = None
) -> Iterator[str]:
    """Yield the rows of `monitor_input` that are not as the chain has them, or those of some runs.

    Runs of older versions have none.
    """
    stored = read_inputs(reader.connection, reader.project, seqs)
    bodies = {body["run"]["seq"]: body for body in record.bodies("decided")}
    decided = {seq: body for seq, body in bodies.items() if seqs is None or seq in seqs}
    for seq in sorted(set(stored) - set(decided)):
        yield f"monitor_input: a row of run {seq}, which was never decided"
    for seq, body in decided.items():
        sealed = body.get(FIELD, {}).get("monitor")
        if sealed is None and seq in stored:
            yield f"monitor_input of run {seq}: the row was never recorded"
        elif sealed is not None and stored.get(seq, NOTHING_FED).digest() != sealed["rows"]:
            what = "node_keys or p_values changed" if seq in stored else "the row is gone"
            yield f"monitor_input of run {seq}: {what}"
