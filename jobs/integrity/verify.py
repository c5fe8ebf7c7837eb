"""`ringfence verify`: check that everything on record is still what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from ringfence.connector.neo4j.write.fence import NO_ENTRY, Anchor, read_anchor
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.integrity import AuditRecord, record_snapshot
from ringfence.connector.store.checkpoint.entries import Checkpoint
from ringfence.connector.store.models import manifests
from ringfence.jobs.integrity.checkpoint.compared_rows import (
    ComparedRows,
    Plan,
    SinceCheckpoint,
    compare_all,
    compare_part,
)
from ringfence.jobs.integrity.checkpoint.progress_file import RunTurn
from ringfence.jobs.integrity.checkpoint.trusted import (
    FULL,
    SINCE,
    Base,
    find_base,
    is_full_due,
    make_checkpoint,
)
from ringfence.jobs.integrity.derivation.findings import Derived
from ringfence.jobs.integrity.derivation.quick_check import find_quick_edits
from ringfence.jobs.integrity.graph_check import KINDS, find_differences
from ringfence.jobs.integrity.graph_record_check import find_graph_record_edits
from ringfence.jobs.integrity.keyless_check import find_anchored_key_edits
from ringfence.jobs.integrity.structure.schema_check import require_tables
from ringfence.jobs.project.node_seed import describe_missing_keys
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.telemetry.traced_run import traced

QUICK = "quick"
NOT_DERIVED = (
    "Entries were not derived again: rows that they are derived from may be among those above. "
    "Once these are as they were sealed: ringfence verify"
)
MAX_LISTED_PROBLEMS = 20  # of one kind; of the others only the number is listed


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was checked, and everything that isn't as it was decided.

    notes: what could not be checked here, and why. quick: whether blocks of rows were compared by
    their digests alone. derived: what was derived again from the entries before it, and what is
    sealed but can't be; empty where nothing was derived, as rows differ from their seals.
    kind: `full`, `since` a checkpoint (with what in `since`), or `quick`. resumed: how many runs an
    interrupted verification had compared. sealed: the entry of the checkpoint that this one left.
    why_full: why everything was compared although that was not asked for.
    """

    entries: int
    runs: int
    predictions: int
    anchored: int | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    quick: bool = False
    derived: tuple[Derived, ...] = ()
    kind: str = FULL
    since: SinceCheckpoint | None = None
    resumed: int = 0
    sealed: int | None = None
    why_full: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """A verification, and the checkpoint that it may seal if it passed; None: nothing is new."""

    verification: Verification
    checkpoint: Checkpoint | None = None


@traced("verify")
def run_verification(
    workspace: Workspace, *, with_py2neo: bool = False, quick: bool = False, since: bool = False
) -> Verification:
    """Check the chain, its anchor, every run, model and prediction, and the graph against SQL.

    Where every row is as it was sealed, entries are derived again from those before them. With
    `quick` blocks of rows are compared by their digests, and the chain with its anchor. With
    `since` what came since the newest checkpoint is checked, and a sample of the rest; everything
    where there is no checkpoint to rely on. With `with_py2neo` the graph is read once more by a
    client that shares no code with ours. Other processes may write meanwhile: where something
    differs all is read again, and what differed only once is no problem. Nothing is written.
    """
    if quick:
        return _twice(workspace, lambda: Checked(_check_quickly(workspace))).verification
    plan = Plan(workspace, with_py2neo, since)
    return check_record(workspace, plan).verification


def run_sealable_verification(
    workspace: Workspace,
    *,
    with_py2neo: bool = False,
    full: bool = False,
    full_days: float | None = None,
    progress: Progress = no_progress,
) -> Checked:
    """Verify since the newest checkpoint, or everything, and return what may be sealed.

    Everything with `full`, or where that was done last `full_days` ago or earlier. A verification
    of everything that is interrupted goes on where it was.
    """
    plan = Plan(workspace, with_py2neo, not full, full_days, resumable=True, progress=progress)
    return check_record(workspace, plan)


def check_record(workspace: Workspace, plan: Plan) -> Checked:
    """Verify by a plan; where that is interrupted, a file is left with what was compared."""
    try:
        done = _twice(workspace, lambda: _check_once(plan))
    except BaseException:
        if plan.full is not None and plan.resumable:
            plan.full.save()
        raise
    if plan.full is not None and plan.resumable:
        plan.full.remove()
    return done


def _twice(workspace: Workspace, check: Callable[[], Checked]) -> Checked:
    """Check again where something differs: what differed only once was being written."""
    workspace.require_migrated()
    require_tables(workspace.store)
    done = check()
    if not done.verification.problems:
        return done
    again = check()
    before = done.verification.problems
    problems = tuple(problem for problem in again.verification.problems if problem in before)
    return replace(again, verification=replace(again.verification, problems=problems))


def _check_quickly(workspace: Workspace) -> Verification:
    """Check chain, anchor and the digests of all blocks of rows."""
    anchor = read_anchor(workspace.graph, workspace.project)
    with record_snapshot(workspace.store, workspace.project, workspace.key_source) as reader:
        record = reader.record()
        problems = list(find_quick_edits(reader, record))
        count = sum(reader.count_predictions().values())
    problems += [*_anchor_problems(record, anchor), *find_anchored_key_edits(record, anchor)]
    number = None if anchor is None else anchor.n
    decided = sum(1 for _ in record.bodies("decided"))
    return Verification(
        len(record.entries), decided, count, number, tuple(problems), quick=True, kind=QUICK
    )


def _check_once(plan: Plan) -> Checked:
    """Check by a plan; the anchor is read before the chain, which can only be beyond it."""
    workspace = plan.workspace
    anchor = read_anchor(workspace.graph, workspace.project)
    with record_snapshot(workspace.store, workspace.project, workspace.key_source) as reader:
        record, now_ns = reader.record(), workspace.store.now_ns(reader.connection)
        base = find_base(record, workspace.project) if plan.since else Base(None)
        if plan.full_days is not None and is_full_due(base, now_ns, plan.full_days):
            base = Base(None, base.reason or f"that is due every {plan.full_days:g} days")
        rows = (
            compare_all(plan, reader, record, now_ns)
            if base.sealed is None
            else compare_part(plan, reader, record, base.sealed.checkpoint.entry)
        )
    problems = [*rows.edits, *rows.derived.problems(), *_anchor_problems(record, anchor)]
    problems += find_anchored_key_edits(record, anchor)
    problems += _graph_problems(plan, record, anchor, rows)
    if plan.with_py2neo:
        problems += _py2neo_problems(workspace)
    unknown = describe_missing_keys(
        workspace.settings, manifests(workspace.store, workspace.project)
    )
    done = Verification(
        len(record.entries),
        sum(1 for _ in record.bodies("decided")),
        rows.predictions,
        None if anchor is None else anchor.n,
        tuple(problems),
        tuple(filter(None, (unknown, "" if rows.derived.subjects else NOT_DERIVED))),
        derived=rows.derived.summary(),
        kind=FULL if base.sealed is None else SINCE,
        since=None if base.sealed is None else rows.describe(base.sealed.n),
        resumed=0 if plan.full is None else plan.full.resumed,
        why_full=base.reason,
    )
    if not rows.brings_news:
        return Checked(done)
    return Checked(done, make_checkpoint(record, base, now_ns, rows.predictions, rows.sample))


def _anchor_problems(record: AuditRecord, anchor: Anchor | None) -> Iterator[str]:
    if anchor is None:
        if any(record.bodies("decided")):
            yield "the graph has lost its memory of the chain (no anchor on the fence node)"
        return
    hash_ = record.hash_of(anchor.n)
    if anchor.n == NO_ENTRY:
        yield "the graph's memory of the chain can't be read: chain_n of the fence is no number"
    elif hash_ is None:
        yield f"the chain ends before entry {anchor.n}, which the graph remembers: it was cut off"
    elif hash_ != anchor.hash:
        yield f"entry {anchor.n} is not the one that the graph remembers: the chain was rewritten"


def _graph_problems(
    plan: Plan, record: AuditRecord, anchor: Anchor | None, rows: ComparedRows
) -> Iterator[str]:
    """Compare the graph with SQL; where SQL was edited, its JSON may be unreadable."""
    turn = None if plan.full is None or rows.seqs is not None else plan.full.graph
    try:
        yield from find_graph_record_edits(plan.workspace, record, anchor, rows.seqs)
        yield from _projection_problems(plan.workspace, rows.seqs, turn)
    except (KeyError, TypeError, ValueError):
        if not rows.edits:
            raise
        yield "the graph can't be compared further: the audit store's rows can't be read"


def _projection_problems(
    workspace: Workspace, seqs: Collection[int] | None, turn: RunTurn | None
) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for difference in find_differences(workspace, seqs, turn):
        counts[difference.kind] += 1
        if counts[difference.kind] <= MAX_LISTED_PROBLEMS:
            yield f"node {difference.node_key} (run {difference.seq}): {KINDS[difference.kind]}"
    for kind, count in counts.items():
        if count > MAX_LISTED_PROBLEMS:
            yield f"… and {count - MAX_LISTED_PROBLEMS} more: {kind}"


def _py2neo_problems(workspace: Workspace) -> Iterator[str]:
    from ringfence.jobs.integrity.py2neo_check import compare  # py2neo is an extra

    for difference in compare(workspace):
        run = f"run {difference.seq}"
        where = run if difference.node_key is None else f"node {difference.node_key} ({run})"
        yield f"{where}: {difference.what} differs for the py2neo client"
