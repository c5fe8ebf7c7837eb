"""The same `ringfence score` on Ray and on one machine: the same rows in SQL and in the graph."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import make_url, select

from ringfence.connector.store import tables
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from tests.end_to_end.test_typed import ORDERS, make
from tests.stores import open_at, sqlite

__all__ = ["make"]

SHOWN = """
MATCH (n)-[e:EVALUATED]->(r:RingfenceRun)
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass)
WITH n, e, r, c, m ORDER BY c.name
RETURN n.id AS id, r.seq AS seq, e.size AS size, collect([c.name, m.p, m.in_set]) AS classes
ORDER BY id
"""
FORGET = """
MATCH (n) WHERE n:RingfenceRun OR n:RingfenceFence OR n:RingfenceClass
  OR ((n:Account OR n:Order) AND n.id IN $new)
DETACH DELETE n
"""
# when and how long a run was, what it was configured with, and notes, which name the engine
OTHERWISE = {
    "token", "started_ns", "decided_ns", "applied_ns", "watermark_from_ns", "watermark_to_ns",
    "config", "notes", "timings",
}  # fmt: skip
pytestmark = pytest.mark.long


def rows_of(store, table, *order):
    with store.reading() as connection:
        found = connection.execute(select(table).order_by(*order)).mappings().all()
    return [{name: one[name] for name in one if name not in OTHERWISE} for one in found]


def rows_left(store, graph):
    """All that runs have left in SQL and in the graph."""
    return (
        rows_of(store, tables.prediction, tables.prediction.c.node_key),
        rows_of(store, tables.run, tables.run.c.seq),
        [row.data() for row in graph.read(SHOWN)],
    )


@dataclass(frozen=True, slots=True)
class OnRay:
    """A copy of a project as it is, whose commands compute on Ray."""

    settings: Settings
    folder: Path

    def __post_init__(self):
        self.folder.mkdir()
        shutil.copytree(self.settings.engine.folder, self.folder / "kept")
        old = sqlite3.connect(make_url(self.settings.audit.url).database)
        new = sqlite3.connect(self.folder / "audit.db")
        old.backup(new)
        old.close()
        new.close()

    @property
    def url(self):
        return f"sqlite:///{self.folder / 'audit.db'}"

    def type(self, config, *arguments):
        """What a command of the copy prints as JSON."""
        secret = self.settings.neo4j.password.get_secret_value()
        own = {
            "NEO4J_USER": self.settings.neo4j.user, "NEO4J_PASSWORD": secret,
            "AUDIT_URL": self.url, "ENGINE_FOLDER": str(self.folder / "kept"),
            "ENGINE_KIND": "ray", "ENGINE_PARTITIONS": "2", "ENGINE_OBJECT_STORE_MB": "80",
        }  # fmt: skip
        line = [sys.executable, "-W", "ignore", "-m", "ringfence", *arguments]
        done = subprocess.run(
            [*line, "--json", "--config", str(config)],
            env=os.environ | {f"RINGFENCE_{name}": value for name, value in own.items()},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@sqlite
def test_scores_on_ray_are_the_rows_of_one_machine(grown, tmp_path):
    workspace, config = grown.workspace, tmp_path / "ringfence.toml"
    run_training(workspace)
    on_ray = OnRay(workspace.settings, tmp_path / "ray")
    run_scoring(workspace)
    grown.arrive(grown.later[0])
    run_scoring(workspace)
    local = rows_left(workspace.store, workspace.graph)
    workspace.graph.run(FORGET, new=grown.later[0].nodes.tolist())

    first = on_ray.type(config, "score")
    assert first["run"]["notes"][0].startswith("forward pass over 2 partitions (ray)")
    grown.arrive(grown.later[0])
    second = on_ray.type(config, "score")
    assert second["run"]["notes"][0].startswith("forward pass over 2 partitions (ray)")
    store = open_at(on_ray.url)
    assert rows_left(store, workspace.graph) == local
    assert len(local[0]) > 100
    store.close()

    kept = on_ray.type(config, "partition")
    assert (kept["kept"], kept["nodes"], len(kept["workers"])) == (True, 400, 2)
    assert sum(one["rows"] for one in kept["workers"]) == 400
    assert 0 < kept["cut"] < 1
    four = on_ray.type(config, "partition", "--parts", "4", "--anew", "--write")
    assert (four["kept"], four["written"], len(four["workers"])) == (False, True, 4)
    assert on_ray.type(config, "partition", "--parts", "4")["kept"]


def test_scores_of_several_labels_on_ray_are_the_rows_of_one_machine(graph, make, tmp_path):
    workspace, config = make(), tmp_path / "state.toml"
    run_training(workspace)
    graph.run(ORDERS, first=300, count=60, known=False)
    on_ray = OnRay(workspace.settings, tmp_path / "ray")
    run_scoring(workspace)
    graph.run(ORDERS, first=400, count=40, known=False)
    run_scoring(workspace)
    local = rows_left(workspace.store, workspace.graph)
    assert len(local[0]) == 100
    workspace.graph.run(FORGET, new=list(range(400, 440)))

    for first, count in ((300, 0), (400, 40)):
        graph.run(ORDERS, first=first, count=count, known=False)
        told = on_ray.type(config, "score")
        assert told["run"]["notes"][0].startswith("forward pass over 2 partitions (ray)")
    store = open_at(on_ray.url)
    assert rows_left(store, workspace.graph) == local
    store.close()
    kept = on_ray.type(config, "partition")
    assert kept["kept"]
    assert sum(one["rows"] for one in kept["workers"]) == kept["nodes"]
