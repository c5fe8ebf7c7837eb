"""`ringfence verify`: check that everything on record is still what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ringfence.connector.neo4j.write.fence import NO_ENTRY, Anchor, read_anchor
from ringfence.connector.store.audit_chain.integrity import AuditRecord, record_snapshot
from ringfence.connector.store.models import manifests
from ringfence.jobs.integrity.derivation.derive import derive_entries
from ringfence.jobs.integrity.derivation.findings import Derived, Findings
from ringfence.jobs.integrity.derivation.quick_check import find_quick_edits
from ringfence.jobs.integrity.graph_check import KINDS, find_differences
from ringfence.jobs.integrity.graph_record_check import find_graph_record_edits
from ringfence.jobs.integrity.keyless_check import find_anchored_key_edits
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.integrity.sample_check import find_chosen_samples
from ringfence.jobs.integrity.structure.schema_check import require_tables
from ringfence.jobs.project.node_seed import describe_missing_keys
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.telemetry.traced_run import traced

MAX_LISTED_PROBLEMS = 20  # of one kind; of the others only the number is listed


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was checked, and everything that isn't as it was decided.

    notes: what could not be checked here, and why. quick: whether blocks of rows were compared by
    their digests alone. derived: what was derived again from the entries before it, and what is
    sealed but can't be; empty where nothing was derived, as rows differ from their seals.
    """

    entries: int
    runs: int
    predictions: int
    anchored: int | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    quick: bool = False
    derived: tuple[Derived, ...] = ()


@traced("verify")
def run_verification(
    workspace: Workspace, *, with_py2neo: bool = False, quick: bool = False
) -> Verification:
    """Check the chain, its anchor, every run, model and prediction, and the graph against SQL.

    Where every row is as it was sealed, entries are derived again from those before them. With
    `quick` blocks of rows are compared by their digests, and the chain with its anchor. With
    `with_py2neo` the graph is read once more by a client that shares no code with ours. Other
    processes may write meanwhile: where something differs all is read again, and what differed only
    once is no problem.
    """
    workspace.require_migrated()
    require_tables(workspace.store)
    check = (
        partial(_check_quickly, workspace)
        if quick
        else partial(_check_once, workspace, with_py2neo)
    )
    done = check()
    if not done.problems:
        return done
    again = check()
    return replace(
        again, problems=tuple(problem for problem in again.problems if problem in done.problems)
    )


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
    return Verification(len(record.entries), decided, count, number, tuple(problems), quick=True)


def _check_once(workspace: Workspace, with_py2neo: bool) -> Verification:
    """Check everything; the anchor is read before the chain, which can only be beyond it."""
    anchor = read_anchor(workspace.graph, workspace.project)
    with record_snapshot(workspace.store, workspace.project, workspace.key_source) as reader:
        record = reader.record()
        edits = list(find_edits(reader, record))
        chosen = [] if edits else list(find_chosen_samples(reader, record, workspace.settings))
        findings = Findings() if edits else derive_entries(reader, record)
        count = sum(reader.count_predictions().values())
    problems = [*edits, *chosen, *findings.problems(), *_anchor_problems(record, anchor)]
    problems += find_anchored_key_edits(record, anchor)
    problems += _graph_problems(workspace, record, anchor, edits)
    if with_py2neo:
        problems += _py2neo_problems(workspace)
    number = None if anchor is None else anchor.n
    decided = sum(1 for _ in record.bodies("decided"))
    unknown = describe_missing_keys(
        workspace.settings, manifests(workspace.store, workspace.project)
    )
    notes = (unknown,) if unknown else ()
    return Verification(
        len(record.entries),
        decided,
        count,
        number,
        tuple(problems),
        notes,
        derived=findings.summary(),
    )


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
    workspace: Workspace, record: AuditRecord, anchor: Anchor | None, edits: Sequence[str]
) -> Iterator[str]:
    """Compare the graph with SQL; where SQL was edited, its JSON may be unreadable."""
    try:
        yield from find_graph_record_edits(workspace, record, anchor)
        yield from _projection_problems(workspace)
    except (KeyError, TypeError, ValueError):
        if not edits:
            raise
        yield "the graph can't be compared further: the audit store's rows can't be read"


def _projection_problems(workspace: Workspace) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for difference in find_differences(workspace):
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
