"""The graph's record except its sets against SQL: runs, classes, coverage, fence, constraints.

A writer may be at work meanwhile. What SQL has decided reaches the graph later, and the graph's
anchor of the chain last: rows beyond the anchored entry may be there or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ringfence.connector.neo4j.graph_record import (
    changed_properties,
    count_odd_evaluated,
    count_odd_may_be,
    find_extra_properties,
    find_schema_edits,
    find_unevaluated,
    read_fence_token,
    read_shown_classes,
    read_shown_coverage,
    read_shown_runs,
)
from ringfence.connector.neo4j.write.coverage_audits import coverage_id, coverage_properties
from ringfence.connector.neo4j.write.fence import Anchor
from ringfence.connector.neo4j.write.prediction_sets import run_id, run_properties
from ringfence.connector.records import StoredCoverage
from ringfence.connector.store import runs
from ringfence.connector.store.audit_chain.integrity import AuditRecord
from ringfence.connector.store.models import class_names
from ringfence.jobs.integrity.structure.anchor_check import find_set_back_anchor
from ringfence.jobs.project.workspace import Workspace

MAX_LISTED_NODES = 20


def find_graph_record_edits(
    workspace: Workspace,
    record: AuditRecord,
    anchor: Anchor | None,
    seqs: Collection[int] | None = None,
) -> Iterator[str]:
    """Yield everything of ours in the graph, except the sets, that is not as SQL has it.

    With `seqs` relationships of these runs' nodes alone are gone through, and all nodes of ours.
    """
    yield from _run_edits(workspace, seqs)
    yield from _class_edits(workspace)
    if seqs is None:
        yield from _unevaluated_edits(workspace)
    yield from _coverage_edits(workspace, record, anchor)
    yield from _fence_edits(workspace, record, anchor)
    yield from find_set_back_anchor(record, anchor)
    yield from find_extra_properties(workspace.graph, workspace.project, of_sets=seqs is None)
    yield from find_schema_edits(workspace.graph)


def _run_edits(workspace: Workspace, seqs: Collection[int] | None) -> Iterator[str]:
    """Compare runs; SQL is read before and after, since runs are decided there first."""
    store, project = workspace.store, workspace.project
    applied = {run_id(project, run.seq): run for run in runs.applied_runs(store, project)}
    shown = {node.facts.get("id"): node for node in read_shown_runs(workspace.graph, project)}
    decided = {run_id(project, seq) for seq in runs.undone(store, project)}
    decided |= {run_id(project, seq) for seq in runs.applied_after(store, project, 0)}
    for id_ in shown:
        if id_ not in decided:
            yield f"RingfenceRun {id_!r}: the audit store has never decided this run"
    for id_, run in applied.items():
        if id_ not in shown:
            yield f"RingfenceRun {id_!r}: the node of an applied run is gone"
            continue
        expected = {"id": id_, **run_properties(run)}
        if changed := changed_properties(shown[id_].facts, expected):
            yield f"RingfenceRun {id_!r}: {', '.join(changed)} changed in the graph"
        if seqs is None:
            yield from _odd_evaluated(workspace, id_)
        elif run.seq in seqs:
            yield from _odd_evaluated(workspace, id_)
            if extra := count_odd_may_be(workspace.graph, id_):
                yield f"MAY_BE: {extra} with properties that are not ringfence's, of {id_!r}"


def _odd_evaluated(workspace: Workspace, id_: str) -> Iterator[str]:
    """EVALUATED that no key leads to: counted in every run, for nodes that left leave room."""
    unkeyed, extra = count_odd_evaluated(workspace.graph, workspace.project, id_)
    if unkeyed:
        yield f"RingfenceRun {id_!r}: {unkeyed} EVALUATED without a key of this project"
    if extra:
        yield f"RingfenceRun {id_!r}: {extra} EVALUATED with properties that are not ringfence's"


def _class_edits(workspace: Workspace) -> Iterator[str]:
    store, project = workspace.store, workspace.project
    versions = {run.model for run in runs.applied_runs(store, project)}
    shown = set(read_shown_classes(workspace.graph, project))
    known = class_names(store, project)
    expected = {name for version in versions for name in known[version]}
    begun = {name for names in known.values() for name in names}  # a run may be on its way
    for name in sorted(expected - shown):
        yield f"RingfenceClass {name!r}: the node is gone"
    for name in sorted(shown - begun, key=str):
        yield f"RingfenceClass {name!r}: no model of this project has such a class"


def _unevaluated_edits(workspace: Workspace) -> Iterator[str]:
    """MAY_BE of nodes that were never evaluated; goes through all MAY_BE."""
    keys = find_unevaluated(
        workspace.graph, workspace.mapping, workspace.project, MAX_LISTED_NODES + 1
    )
    for key in keys[:MAX_LISTED_NODES]:
        yield f"node {key}: MAY_BE in the graph, but the node was never evaluated"
    if len(keys) > MAX_LISTED_NODES:
        yield "… and more nodes with MAY_BE that were never evaluated"


def _coverage_edits(
    workspace: Workspace, record: AuditRecord, anchor: Anchor | None
) -> Iterator[str]:
    now = _coverage_after(record, None)
    before = _coverage_after(record, 0 if anchor is None else anchor.n)
    shown = {n.facts.get("id"): n for n in read_shown_coverage(workspace.graph, workspace.project)}
    for id_ in sorted({*shown, *(now.keys() & before.keys())}, key=str):
        expected = [rows[id_] for rows in (now, before) if id_ in rows]
        if not expected:
            yield f"CoverageAudit {id_!r}: no audit has recorded it"
        elif id_ not in shown:
            yield f"CoverageAudit {id_!r}: the node is gone"
        else:
            changed = [changed_properties(shown[id_].facts, facts) for facts in expected]
            if all(changed):
                yield f"CoverageAudit {id_!r}: {', '.join(changed[0])} changed in the graph"
            run = run_id(workspace.project, expected[0]["seq"])
            if shown[id_].related != (run,):
                yield f"CoverageAudit {id_!r}: AUDITS points to {list(shown[id_].related)}"


def _coverage_after(record: AuditRecord, n: int | None) -> dict[str, dict[str, Any]]:
    """The coverage nodes as the audits up to entry `n` left them, by id.

    Entries and nodes of older versions lack the columns that came later.
    """
    stored: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for entry in record.entries:
        if entry.kind == "audited" and (n is None or entry.n <= n):
            for row in entry.facts["coverage"]:
                stored[row["seq"], row["slice"], row["name"], row["alpha"]] = row
            for seq, slice_, name, *alpha in entry.facts.get("gone", ()):
                for id_ in [
                    id_of_row for id_of_row in stored if id_of_row[:3] == (seq, slice_, name)
                ]:
                    if not alpha or id_[3] == alpha[0]:  # older entries: a run had one alpha
                        stored.pop(id_)
    if n is None:  # older versions sealed no removal of rows that move on
        columns = ("seq", "slice", "name", "alpha")
        standing = {tuple(row[name] for name in columns) for row in record.coverage}
        stored = {id_: row for id_, row in stored.items() if id_ in standing}
    return dict(_coverage_node(row) for row in stored.values())


def _coverage_node(row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Id and properties of the node of a row as an entry has it."""
    typed = StoredCoverage(**row)
    id_, facts = coverage_id(typed), coverage_properties(typed)
    return id_, {"id": id_, **{name: facts[name] for name in facts if name in {*row, "at"}}}


def _fence_edits(workspace: Workspace, record: AuditRecord, anchor: Anchor | None) -> Iterator[str]:
    """Compare the fence's token with the lease's: it is that of a session which wrote."""
    token = read_fence_token(workspace.graph, workspace.project)
    remembered = 0 if anchor is None else anchor.n
    tokens = (e.facts.get("lease") for e in record.entries if e.n <= remembered)
    least = max((token for token in tokens if isinstance(token, int)), default=0)
    most = record.lease["token"] if record.lease else 0
    if token is None:
        if least:
            yield "RingfenceFence: the node, or its token, is gone"
    elif not isinstance(token, int) or token < least:
        yield f"RingfenceFence: token is {token!r}, but lease {least} has written to the graph"
    elif token > most:
        yield f"RingfenceFence: token is {token}, but the audit store knows of lease {most} at most"
