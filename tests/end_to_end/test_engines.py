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
from sqlalchemy import make_url

from ringfence.jobs.config.settings import Settings
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from tests.end_to_end.rows_left import rows_left
from tests.end_to_end.test_typed import ORDERS, make
from tests.patience import PATIENCE_SECONDS
from tests.stores import open_at, sqlite

__all__ = ["make"]

FORGET = """
MATCH (n) WHERE n:RingfenceRun OR n:RingfenceFence OR n:RingfenceClass
  OR ((n:Account OR n:Order) AND n.id IN $new)
DETACH DELETE n
"""
pytestmark = pytest.mark.long


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
        variables = {
            "NEO4J_USER": self.settings.neo4j.user, "NEO4J_PASSWORD": secret,
            "AUDIT_URL": self.url, "ENGINE_FOLDER": str(self.folder / "kept"),
            "ENGINE_KIND": "ray", "ENGINE_PARTITIONS": "2", "ENGINE_OBJECT_STORE_MB": "80",
        }  # fmt: skip
        line = [sys.executable, "-W", "ignore", "-m", "ringfence", *arguments]
        done = subprocess.run(
            [*line, "--json", "--config", str(config)],
            env=os.environ | {f"RINGFENCE_{name}": value for name, value in variables.items()},
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@sqlite
def test_scores_on_ray_are_the_rows_of_one_machine(trained, tmp_path):
    workspace, config = trained.workspace, tmp_path / "ringfence.toml"
    on_ray = OnRay(workspace.settings, tmp_path / "ray")
    run_scoring(workspace)
    trained.arrive(trained.later[0])
    run_scoring(workspace)
    local = rows_left(workspace.store, workspace.graph)
    workspace.graph.run(FORGET, new=trained.later[0].nodes.tolist())

    first = on_ray.type(config, "score")
    assert first["run"]["notes"][0].startswith("forward pass over 2 partitions (ray)")
    trained.arrive(trained.later[0])
    second = on_ray.type(config, "score")
    assert second["run"]["notes"][0].startswith("forward pass over 2 partitions (ray)")
    store = open_at(on_ray.url)
    assert rows_left(store, workspace.graph) == local
    assert len(local[0]) > 100
    store.close()

    kept = on_ray.type(config, "partition")
    assert (kept["kept"], kept["nodes"], len(kept["workers"])) == (True, 400, 2)
    assert sum(worker["rows"] for worker in kept["workers"]) == 400
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
    assert sum(worker["rows"] for worker in kept["workers"]) == kept["nodes"]
