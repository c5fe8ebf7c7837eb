"""Sets of some runs derived again from their p-values and levels.

What follows from all nodes before a run (levels, joined nodes, the monitor, coverage) is left to
the full verification, which goes through the whole record.
"""

from __future__ import annotations

from collections.abc import Collection

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.jobs.integrity.derivation import derived_sets
from ringfence.jobs.integrity.derivation.derived_sets import derive_sets
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import Manifests, decided_run


def derive_part(reader: RecordReader, record: AuditRecord, seqs: Collection[int]) -> Findings:
    """Derive the sets of some runs; the rows must be those that the chain has."""
    findings, manifests = Findings((derived_sets.SUBJECT,)), Manifests(reader, record)
    for entry in record.entries:
        if entry.kind == "decided" and entry.facts["run"]["seq"] in seqs:
            run = decided_run(entry.n, entry.facts)
            try:
                derive_sets(manifests, run, findings)
            except (KeyError, TypeError, ValueError, AttributeError) as error:  # an odd form
                problem = f"entry {entry.n} can't be derived: {type(error).__name__} {error}"
                findings.compare("decided entries", problem)
    return findings
