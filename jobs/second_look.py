"""What SQL decided against what an independent client reads in the graph, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select

from ringfence.connector import runs
from ringfence.connector.embedded import find_running
from ringfence.connector.errors import ServerError
from ringfence.connector.models import manifest_of
from ringfence.connector.projection import run_id
from ringfence.connector.second_client import SecondClient, SeenSet, second_client
from ringfence.connector.tables import run
from ringfence.jobs.audit_store import secret_text
from ringfence.jobs.settings import Settings
from ringfence.jobs.workspace import Workspace

FACTS = {"rule": "rule", "alpha": "alpha", "threshold": "threshold",
         "calibration": "n_calibration", "model": "model"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing about which SQL and the graph, as py2neo reads it, don't agree.

    `node_key` is the typed key, or None where the run itself differs.
    """

    seq: int
    node_key: str | None
    what: str
    in_sql: Any
    in_graph: Any


@contextmanager
def open_second(settings: Settings) -> Iterator[SecondClient]:
    """Connect py2neo to the configured server, or to the project's embedded one, which must run."""
    neo4j = settings.neo4j
    uri, user, password = neo4j.uri, neo4j.user, secret_text(neo4j.password)
    if uri == "embedded":
        server = find_running(settings.engine.folder / "neo4j")
        if server is None:
            raise ServerError(
                found="the embedded Neo4j of this project doesn't run",
                needed="it, to look at it",
                next_step=f"ringfence neo4j start --data {settings.engine.folder / 'neo4j'}",
            )
        uri, user, password = server.uri, server.user, server.password
    with second_client(uri, user, password, neo4j.database, neo4j.tls) as client:
        yield client


def compare(workspace: Workspace) -> list[Difference]:
    """Return every difference between SQL and the graph for the runs that were applied.

    A run that is decided but not applied yet is no difference: the next run repairs it. A node
    that had left the graph before its set reached it is none either.
    """
    with open_second(workspace.settings) as client:
        return list(_differences(workspace, client))


def _differences(workspace: Workspace, client: SecondClient) -> Iterator[Difference]:
    seen = client.runs(workspace.project)
    for row in _applied(workspace):
        shown = seen.pop(row.seq, None)
        if shown is None:
            yield Difference(row.seq, None, "run is missing in the graph", row.model, None)
            continue
        for name, column in FACTS.items():
            if shown[name] != getattr(row, column):
                yield Difference(row.seq, None, name, getattr(row, column), shown[name])
        yield from _compare_sets(workspace, client, row, shown["evaluated"])
    decided = set(runs.undone(workspace.store, workspace.project))
    for seq, shown in seen.items():
        if seq not in decided:
            yield Difference(seq, None, "run is not in SQL", None, shown["model"])


def _applied(workspace: Workspace) -> list[Row[Any]]:
    query = select(run).where(run.c.project == workspace.project, run.c.state == "applied")
    with workspace.store.reading() as connection:
        return list(connection.execute(query.order_by(run.c.seq)))


def _compare_sets(
    workspace: Workspace, client: SecondClient, row: Row[Any], in_graph: int
) -> Iterator[Difference]:
    classes = json.loads(manifest_of(workspace.store, workspace.project, row.model))["classes"]
    block_rows = workspace.settings.engine.write_rows
    met = 0
    for block in runs.payload(workspace.store, workspace.project, row.seq, block_rows):
        shown = client.sets(workspace.project, [f"{one.project}/{one.node_key}" for one in block])
        for one in block:
            found = shown.get(f"{one.project}/{one.node_key}")
            met += found is not None and found.seq == row.seq
            yield from _compare_set(one, _decided(one, row, classes), found)
    if met != in_graph:
        yield from _strays(workspace, client, row.seq, block_rows)


def _decided(one: Row[Any], row: Row[Any], classes: list[str]) -> SeenSet:
    p = dict(zip(classes, json.loads(one.p_values), strict=True))
    return SeenSet(
        row.seq, one.size, row.alpha, {name: p[name] for name in json.loads(one.classes)}
    )


def _compare_set(one: Row[Any], decided: SeenSet, found: SeenSet | None) -> Iterator[Difference]:
    if found is None:
        if one.in_graph:
            yield Difference(
                decided.seq, one.node_key, "set is missing in the graph", decided.p, None
            )
        return
    for name in ("seq", "size", "alpha", "p"):
        in_sql, in_graph = getattr(decided, name), getattr(found, name)
        if in_sql != in_graph:
            yield Difference(decided.seq, one.node_key, name, in_sql, in_graph)


def _strays(
    workspace: Workspace, client: SecondClient, seq: int, rows: int
) -> Iterator[Difference]:
    """Find what the graph shows as evaluated by a run in which SQL has no such prediction."""
    project = workspace.project
    stored = {
        one.node_key for block in runs.payload(workspace.store, project, seq, rows) for one in block
    }
    for block in client.keys(run_id(project, seq), rows):
        for key in block:
            typed = key.removeprefix(f"{project}/")
            if typed not in stored:
                yield Difference(seq, typed, "set is not in SQL", None, key)
