"""`ringfence verify`: is everything on record still what was decided?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from ringfence.connector import chain, projection, runs
from ringfence.connector.chain import chain_key
from ringfence.connector.comparison import KINDS, differences
from ringfence.connector.runs import Prediction, payload_digest
from ringfence.connector.tables import audit, model, run
from ringfence.jobs.audit_store import secret_text
from ringfence.jobs.workspace import Workspace

SHOWN = 20  # problems of one kind that are listed one by one


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was checked, and everything that isn't as it was decided."""

    entries: int
    runs: int
    predictions: int
    anchored: int | None
    problems: tuple[str, ...]


def run_verification(workspace: Workspace, *, second_client: bool = False) -> Verification:
    """Check the chain, its anchor, every run, model and prediction, and the graph against SQL.

    With `second_client` the graph is read once more by a client that shares no code with ours.
    """
    workspace.require_migrated()
    key = chain_key(secret_text(workspace.settings.audit.key), workspace.settings.engine.folder)
    project = workspace.project
    anchor = projection.anchored(workspace.graph, project)
    with workspace.store.reading() as connection:
        entries = _entries(connection, project)
        problems = list(_chain_problems(connection, project, key, anchor, entries))
        problems += _run_problems(connection, project, entries)
        problems += _model_problems(connection, project, entries)
    decided = {entry["run"]["seq"]: entry for entry in entries if entry["kind"] == "decided"}
    count = 0
    for seq, entry in decided.items():
        found = _predictions(workspace, seq)
        count += len(found)
        if payload_digest(found) != entry["predictions"]:
            problems.append(f"run {seq}: its predictions are not those that were decided")
    problems += _graph_problems(workspace)
    if second_client:
        problems += _second_problems(workspace)
    number = None if anchor is None else anchor[0]
    return Verification(len(entries), len(decided), count, number, tuple(problems))


def _entries(connection: Connection, project: str) -> list[dict[str, Any]]:
    rows = connection.execute(
        select(audit.c.body).where(audit.c.project == project).order_by(audit.c.n)
    )
    return [json.loads(row.body) for row in rows]


def _chain_problems(
    connection: Connection,
    project: str,
    key: bytes,
    anchor: tuple[int, str] | None,
    entries: list[dict[str, Any]],
) -> Iterator[str]:
    broken = chain.first_broken(connection, project, key)
    if broken is not None:
        yield f"the chain is broken at entry {broken}: it was edited, or the key is another one"
    if anchor is None:
        if any(entry["kind"] == "decided" for entry in entries):
            yield "the graph has lost its memory of the chain (no anchor on the fence node)"
        return
    number, expected = anchor
    found = connection.execute(
        select(audit.c.hash).where(audit.c.project == project, audit.c.n == number)
    ).scalar()
    if found is None:
        yield f"the chain ends before entry {number}, which the graph remembers: it was cut off"
    elif found != expected:
        yield f"entry {number} is not the one that the graph remembers: the chain was rewritten"


def _run_problems(
    connection: Connection, project: str, entries: list[dict[str, Any]]
) -> Iterator[str]:
    recorded = {
        entry["run"]["seq"]: entry["run"] for entry in entries if entry["kind"] == "decided"
    }
    rows = {row.seq: row._asdict() for row in connection.execute(
        select(run).where(run.c.project == project))}  # fmt: skip
    for seq in sorted(set(recorded) | set(rows)):
        if seq not in rows:
            yield f"run {seq} was decided, but its row is gone"
        elif seq not in recorded:
            yield f"run {seq} stands in SQL, but was never decided"
        else:
            changed = [
                name
                for name, value in recorded[seq].items()
                if name not in {"timings"} and rows[seq][name] != value
            ]
            if changed:
                yield f"run {seq}: {', '.join(changed)} changed after the decision"


def _model_problems(
    connection: Connection, project: str, entries: list[dict[str, Any]]
) -> Iterator[str]:
    recorded = {
        entry["version"]: entry["manifest_sha256"]
        for entry in entries
        if entry["kind"] == "trained"
    }
    for row in connection.execute(select(model).where(model.c.project == project)):
        if recorded.get(row.version) != hashlib.sha256(row.manifest.encode()).hexdigest():
            yield f"model {row.version}: its manifest is not the one that was recorded"


def _predictions(workspace: Workspace, seq: int) -> list[Prediction]:
    return [
        Prediction(
            one.node_key,
            tuple(json.loads(one.classes)),
            tuple(json.loads(one.p_values)),
            tuple(json.loads(one.scores)),
            one.degree,
        )
        for block in runs.payload(workspace.store, workspace.project, seq, rows=10_000)
        for one in block
    ]


def _graph_problems(workspace: Workspace) -> Iterator[str]:
    found = differences(workspace.store, workspace.graph, workspace.mapping, workspace.project)
    counts: dict[str, int] = {}
    for one in found:
        counts[one.kind] = counts.get(one.kind, 0) + 1
        if counts[one.kind] <= SHOWN:
            yield f"node {one.node_key} (run {one.seq}): {KINDS[one.kind]}"
    for kind, count in counts.items():
        if count > SHOWN:
            yield f"… and {count - SHOWN} more: {kind}"


def _second_problems(workspace: Workspace) -> Iterator[str]:
    from ringfence.jobs.second_look import compare  # py2neo is an extra

    for one in compare(workspace):
        where = f"run {one.seq}" if one.node_key is None else f"node {one.node_key} (run {one.seq})"
        yield f"{where}: {one.what} differs for the second client"
