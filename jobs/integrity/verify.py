"""`ringfence verify`: is everything on record still what was decided?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ringfence.connector.neo4j.write.fence import NO_ENTRY, Anchor, read_anchor
from ringfence.connector.store.trail.integrity import AuditRecord, record_snapshot
from ringfence.jobs.integrity.graph_check import KINDS, find_differences
from ringfence.jobs.integrity.graph_record_check import find_graph_record_edits
from ringfence.jobs.integrity.record_check import find_edits
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.telemetry.traced_run import traced

MAX_LISTED_PROBLEMS = 20  # of one kind; of the others only the number is told


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was checked, and everything that isn't as it was decided."""

    entries: int
    runs: int
    predictions: int
    anchored: int | None
    problems: tuple[str, ...]


@traced("verify")
def run_verification(workspace: Workspace, *, with_py2neo: bool = False) -> Verification:
    """Check the chain, its anchor, every run, model and prediction, and the graph against SQL.

    With `with_py2neo` the graph is read once more by a client that shares no code with ours. Other
    processes may write meanwhile: where something differs all is read again, and what differed only
    once is no problem.
    """
    workspace.require_migrated()
    done = _check_once(workspace, with_py2neo)
    if not done.problems:
        return done
    again = _check_once(workspace, with_py2neo)
    return replace(again, problems=tuple(one for one in again.problems if one in done.problems))


def _check_once(workspace: Workspace, with_py2neo: bool) -> Verification:
    """Check everything; the anchor is read before the chain, which can only be beyond it."""
    anchor = read_anchor(workspace.graph, workspace.project)
    with record_snapshot(workspace.store, workspace.project, workspace.key_source) as reader:
        record = reader.record()
        edits = list(find_edits(reader, record))
        count = sum(reader.count_predictions().values())
    problems = [*edits, *_anchor_problems(record, anchor)]
    problems += _graph_problems(workspace, record, anchor, edits)
    if with_py2neo:
        problems += _py2neo_problems(workspace)
    number = None if anchor is None else anchor.n
    decided = sum(1 for _ in record.bodies("decided"))
    return Verification(len(record.entries), decided, count, number, tuple(problems))


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
