"""SQL against the chain, all of it or since a checkpoint: what a verification compares, and how.

A plan is what was asked for. Both readings of a record that differs at first share it, with the
nonce of the draw and the runs that are done.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ringfence import __version__
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.jobs.integrity.checkpoint.derived_part import derive_part
from ringfence.jobs.integrity.checkpoint.draw import Sample, chances_of_notice, draw
from ringfence.jobs.integrity.checkpoint.part_check import find_part_edits
from ringfence.jobs.integrity.checkpoint.progress_file import Began, FullProgress, resume
from ringfence.jobs.integrity.checkpoint.scope import scope_since
from ringfence.jobs.integrity.checkpoint.touched_nodes import touched_runs
from ringfence.jobs.integrity.derivation.derive import derive_entries
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.integrity.sample_check import find_chosen_samples
from ringfence.jobs.project.workspace import Workspace

NOTHING_DRAWN = Sample()


@dataclass(frozen=True, slots=True)
class SinceCheckpoint:
    """What was compared by a verification that went on from a checkpoint.

    entry: of the checkpoint. runs, predictions: what came since. drawn, of: how many older runs
    were drawn, and of how many, with `drawn_predictions`. chances: that an edit is noticed, by how
    many older runs it is in.
    """

    entry: int
    runs: int
    predictions: int
    drawn: int
    of: int
    drawn_predictions: int
    chances: Mapping[int, float]


@dataclass(slots=True)
class Plan:
    """How to verify: what was asked for, and what both readings of the record share."""

    workspace: Workspace
    with_py2neo: bool = False
    since: bool = False
    full_days: float | None = None
    resumable: bool = False
    progress: Progress = no_progress
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    full: FullProgress | None = None


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """What the comparison of SQL with the chain came to.

    seqs: the runs that were compared, None for all. new: number of runs that came since, and of
    their predictions. brings_news: whether a checkpoint would say more than the one before it.
    """

    edits: Sequence[str]
    derived: Findings
    predictions: int
    sample: Sample = NOTHING_DRAWN
    seqs: Collection[int] | None = None
    new: tuple[int, int] = (0, 0)
    brings_news: bool = True

    def describe(self, entry: int) -> SinceCheckpoint:
        """Return what was compared since the checkpoint of an entry."""
        drawn, of = len(self.sample.runs), self.sample.of
        chances = chances_of_notice(self.sample)
        return SinceCheckpoint(entry, *self.new, drawn, of, self.sample.nodes, chances)


def compare_all(plan: Plan, reader: RecordReader, record: AuditRecord, now_ns: int) -> ComparedRows:
    """Compare every row with the chain, and derive every entry."""
    plan.full = plan.full or _begin_full(plan, reader, record, now_ns)
    turn = None if plan.full is None else plan.full.rows
    edits = list(find_edits(reader, record, turn))
    if not edits:
        edits = list(find_chosen_samples(reader, record, plan.workspace.settings))
        findings = derive_entries(reader, record)
    else:
        findings = Findings()
    return ComparedRows(edits, findings, sum(reader.count_predictions().values()))


def _begin_full(
    plan: Plan, reader: RecordReader, record: AuditRecord, now_ns: int
) -> FullProgress | None:
    """Return how far an interrupted verification came; None where nothing is kept of it."""
    if not plan.resumable or record.first_broken is not None or not record.entries:
        return None
    newest = record.entries[-1]
    began = Began(newest.n, newest.hash, now_ns, __version__)
    full = resume(
        plan.workspace.folder,
        reader.key,
        began,
        record.hash_of,
        lambda entry: touched_runs(reader, scope_since(record, entry)),
    )
    full.show(_nodes_by_run(record), plan.progress)
    return full


def compare_part(plan: Plan, reader: RecordReader, record: AuditRecord, since: int) -> ComparedRows:
    """Compare what entries after one are about, and a sample of older runs."""
    scope, nodes = scope_since(record, since), _nodes_by_run(record)
    older = {seq: count for seq, count in nodes.items() if seq not in scope.runs}
    wanted = plan.workspace.settings.audit.verify_sample_nodes
    sample = draw(older, wanted, reader.key, plan.nonce)
    edits = list(find_part_edits(reader, record, scope, sample))
    seqs = scope.runs | set(sample.runs)
    if not edits:
        edits = list(find_chosen_samples(reader, record, plan.workspace.settings, seqs))
        findings = derive_part(reader, record, seqs)
    else:
        findings = Findings()
    new = len(scope.runs), sum(nodes.get(seq, 0) for seq in scope.runs)
    news = not scope.is_empty
    return ComparedRows(edits, findings, sum(nodes.values()), sample, seqs, new, news)


def _nodes_by_run(record: AuditRecord) -> dict[int, int]:
    return {body["run"]["seq"]: body["run"]["n_evaluated"] for body in record.bodies("decided")}
