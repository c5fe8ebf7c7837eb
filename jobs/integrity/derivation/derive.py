"""`ringfence verify` derives again: which entries of the chain don't follow from those before them.

A row that is compared with its seal is the one that was sealed; here is asked whether it should
have been. Somebody who edits a row, lets a run of an older version or of a changed program rest on
it and puts it back leaves a record in which every row fits its seal, and an entry that nothing
before it explains.

    with record_snapshot(store, project, key_source) as reader:
        findings = derive_entries(reader, reader.record())
"""

from __future__ import annotations

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.shadow.coverage import KIND as SHADOW_AUDITED
from ringfence.jobs.integrity.derivation import (
    derived_coverage,
    derived_joined,
    derived_levels,
    derived_monitor,
    derived_sets,
    derived_shadow,
)
from ringfence.jobs.integrity.derivation.counted import Counted
from ringfence.jobs.integrity.derivation.derived_coverage import CoverageRows
from ringfence.jobs.integrity.derivation.derived_joined import JoinedNodes
from ringfence.jobs.integrity.derivation.derived_levels import derive_levels
from ringfence.jobs.integrity.derivation.derived_monitor import MonitorStates
from ringfence.jobs.integrity.derivation.derived_sets import derive_sets
from ringfence.jobs.integrity.derivation.derived_shadow import ShadowRows
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import Body, DecidedRun, History

LATER = "later evaluations"
NO_LEVELS = "that are compared with their digest: the levels they used are on no record"
SUBJECTS = (
    derived_sets.SUBJECT,
    derived_levels.SUBJECT,
    derived_joined.SUBJECT,
    derived_monitor.SUBJECT,
    derived_coverage.SUBJECT,
    derived_shadow.SUBJECT,
    LATER,
)
NO_BASIS = "says nothing of what it can be derived from, although earlier runs do"


def derive_entries(reader: RecordReader, record: AuditRecord) -> Findings:
    """Go through the chain and derive each entry from those before it.

    The rows must be those that the chain has: call it where `find_edits` finds nothing.
    """
    derivation = _Derivation(reader, record)
    for entry in record.entries:
        try:
            derivation.take(entry.n, entry.kind, entry.facts)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # an odd form
            problem = f"entry {entry.n} can't be derived: {type(error).__name__} {error}"
            derivation.findings.compare(f"{entry.kind} entries", problem)
    return derivation.findings


class _Derivation:
    """The record as far as the chain was gone through, and what each entry has to follow from."""

    def __init__(self, reader: RecordReader, record: AuditRecord) -> None:
        self.findings = Findings(SUBJECTS, if_any=(derived_shadow.SUBJECT, LATER))
        self.history = History(reader, record)
        self.counted = Counted(self.history)
        self.joined = JoinedNodes(self.history)
        self.monitor = MonitorStates(self.history)
        self.coverage = CoverageRows(self.history, self.counted)
        self.shadow = ShadowRows(self.history)
        self._seals_basis = False

    def take(self, entry: int, kind: str, body: Body) -> None:
        """Derive an entry of a kind that follows from others."""
        if kind == "decided":
            self._bring_up_to(entry)
            self._derive_run(self.history.decide(entry, body))
        elif kind == "audited":
            self._bring_up_to(entry)
            self.coverage.derive(body, self.findings)
        elif kind == SHADOW_AUDITED:
            self._bring_up_to(entry)
            self.shadow.derive(body, self.findings)
        elif kind == "rescored":
            self.findings.leave(LATER, NO_LEVELS, body["nodes"])
        elif kind == "grouped":
            self._bring_up_to(entry)
            self.counted.add_groups(body["seq"])

    def _bring_up_to(self, entry: int) -> None:
        """Take in the classes that were known when an entry was written."""
        changes = self.history.advance(entry)
        self.joined.update(changes)
        self.counted.update(changes)

    def _derive_run(self, run: DecidedRun) -> None:
        if run.basis is None and self._seals_basis:
            self.findings.compare(derived_joined.SUBJECT, f"run {run.seq} {NO_BASIS}", count=0)
        self._seals_basis = self._seals_basis or run.basis is not None
        derive_sets(self.history, run, self.findings)
        came = self.joined.derive(run, self.findings)
        derive_levels(self.history, run, came, self.findings)
        self.monitor.derive(run, self.findings)
        self.counted.add_run(run)
        self.coverage.add_run(run)
