"""`ringfence verify --quick`: blocks of rows against the chain by their digests, and no more.

The database makes the texts that the digests are over, so that no object is made per row. Left to
the whole verification: the worklist and its marks, shadow sets, later evaluations, first sightings,
`top_p`, `in_graph`, creation times and evidence of predictions, derived entries, the names of
single rows of a block, and the graph beyond its memory of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ringfence.connector.errors import StoreError
from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.jobs.integrity.derivation.monitor_input_check import find_monitor_input_edits
from ringfence.jobs.integrity.record_check import find_edits_of_shown_rows


def find_quick_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield the blocks of rows that are not as the chain has them."""
    edits = list(find_edits_of_shown_rows(record))
    yield from edits
    if record.first_broken is not None:  # digests of a broken chain say nothing
        return
    basis = Basis(reader.connection, reader.project, reader.key)
    checks: list[Callable[[], None]] = [
        basis.require_runs,
        partial(basis.require_labels, counted=True),
        basis.require_groups,
        *(partial(basis.require_model, version) for version in sorted(record.models)),
        *(partial(basis.require_predictions, {seq}, counted=True) for seq in basis.decided),
    ]
    for check in checks:
        try:
            check()
        except StoreError as error:
            if error.found not in edits:
                yield error.found
    yield from find_monitor_input_edits(reader, record)
