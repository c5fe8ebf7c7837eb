"""What SQL decided against what an independent client, py2neo, reads in the graph, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ringfence.connector.errors import ServerError
from ringfence.connector.neo4j.embedded import find_running
from ringfence.connector.neo4j.py2neo_client import Py2neoClient, SeenSet, connect_py2neo
from ringfence.connector.neo4j.write.prediction_sets import run_id
from ringfence.connector.records import Run, StoredPrediction
from ringfence.connector.store import predictions, runs
from ringfence.connector.store.audit_chain.same_value import is_identical
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.graph_check import decided_p_values
from ringfence.jobs.project.audit_store import secret_text
from ringfence.jobs.project.workspace import Workspace

FACTS = {"rule": "rule", "alpha": "alpha", "threshold": "threshold", "level": "level",
         "promise": "promise", "calibration": "n_calibration", "model": "model"}  # fmt: skip
"""Properties of a run's node, and the columns of SQL that they were written from."""


@dataclass(frozen=True, slots=True)
class Py2neoDifference:
    """One thing about which SQL and the graph, as py2neo reads it, don't agree.

    `node_key` is the typed key, or None where the run itself differs.
    """

    seq: int
    node_key: str | None
    what: str
    in_sql: Any
    in_graph: Any


@contextmanager
def open_py2neo(settings: Settings) -> Iterator[Py2neoClient]:
    """Connect py2neo to the configured server, or to the project's embedded one, which must run."""
    neo4j = settings.neo4j
    uri, user, password = neo4j.uri, neo4j.user, secret_text(neo4j.password)
    if uri == "embedded":
        folder = settings.engine.folder / "neo4j"
        server = find_running(folder)
        if server is None:
            raise ServerError(
                found="the embedded Neo4j of this project doesn't run",
                needed="a running server",
                next_step=f"ringfence neo4j start --data {folder}",
            )
        uri, user, password = server.uri, server.user, server.password
    with connect_py2neo(uri, user, password, neo4j.database, neo4j.tls) as client:
        yield client


def compare(workspace: Workspace) -> list[Py2neoDifference]:
    """Return every difference between SQL and the graph for the runs that were applied.

    A run that is decided but not applied yet is no difference: the next run repairs it. A node
    that had left the graph before its set reached it is none either.
    """
    with open_py2neo(workspace.settings) as client:
        return list(_differences(workspace, client))


def _differences(workspace: Workspace, client: Py2neoClient) -> Iterator[Py2neoDifference]:
    seen_runs = client.runs(workspace.project)
    for run in runs.applied_runs(workspace.store, workspace.project):
        seen = seen_runs.pop(run.seq, None)
        if seen is None:
            yield Py2neoDifference(run.seq, None, "run is missing in the graph", run.model, None)
            continue
        for name, column in FACTS.items():
            in_sql, in_graph = getattr(run, column), getattr(seen, name)
            if in_graph != in_sql:
                yield Py2neoDifference(run.seq, None, name, in_sql, in_graph)
        yield from _compare_sets(workspace, client, run, seen.evaluated)
    decided = set(runs.undone(workspace.store, workspace.project))
    for seq, seen in seen_runs.items():
        if seq not in decided:
            yield Py2neoDifference(seq, None, "run is not in SQL", None, seen.model)


def _compare_sets(
    workspace: Workspace, client: Py2neoClient, run: Run, evaluated_in_graph: int
) -> Iterator[Py2neoDifference]:
    project = workspace.project
    classes = json.loads(manifest_of(workspace.store, project, run.model))["classes"]
    block_rows = workspace.settings.engine.write_rows
    met = 0
    for block in predictions.payload(workspace.store, project, run.seq, block_rows):
        seen_sets = client.sets(project, [f"{project}/{stored.node_key}" for stored in block])
        for stored in block:
            seen = seen_sets.get(f"{project}/{stored.node_key}")
            met += seen is not None and seen.seq == run.seq
            yield from _compare_set(stored, _decided(stored, run, classes), seen)
    if met != evaluated_in_graph:
        yield from _orphaned(workspace, client, run.seq, block_rows)


def _decided(stored: StoredPrediction, run: Run, classes: Sequence[str]) -> SeenSet:
    return SeenSet(
        run.seq,
        stored.size,
        run.alpha,
        run.level,
        stored.band,
        decided_p_values(stored, run, classes),
        frozenset(stored.classes),
        stored.sampled or None,
        sorted(stored.lists) or None,
    )


def _compare_set(
    stored: StoredPrediction, decided: SeenSet, seen: SeenSet | None
) -> Iterator[Py2neoDifference]:
    if seen is None:
        if stored.in_graph:
            yield Py2neoDifference(
                decided.seq, stored.node_key, "set is missing in the graph", decided.p, None
            )
        return
    for name in ("seq", "size", "alpha", "level", "band", "p", "in_set", "sampled", "lists"):
        in_sql, in_graph = getattr(decided, name), getattr(seen, name)
        if not is_identical(in_graph, in_sql):
            yield Py2neoDifference(decided.seq, stored.node_key, name, in_sql, in_graph)


def _orphaned(
    workspace: Workspace, client: Py2neoClient, seq: int, rows: int
) -> Iterator[Py2neoDifference]:
    """Find what the graph shows as evaluated by a run in which SQL has no such prediction."""
    project = workspace.project
    blocks = predictions.payload_keys(workspace.store, project, seq, rows)
    stored_keys = {key for block in blocks for key in block}
    for block in client.keys(run_id(project, seq), rows):
        for key in block:
            typed = key.removeprefix(f"{project}/")
            if typed not in stored_keys:
                yield Py2neoDifference(seq, typed, "set is not in SQL", None, key)
