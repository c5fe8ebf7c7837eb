"""Only how long after one date another one is decides the class: through the whole path."""

import random
from datetime import date, timedelta

import numpy as np
import pytest

from ringfence.jobs.config.load import load
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import run_explain
from tests.end_to_end.test_relation_columns import kept_and_anew
from tests.forms import PUBLISHED_SEED_KEY

pytestmark = pytest.mark.slow

CONFIG = """
project = "{name}"
[neo4j]
uri = "{uri}"
[graph]
class_property = "state"
[[graph.nodes]]
label = "Parcel"
key = "nr"
role = "classified"
columns = ["size", "ordered", "sent"]
[[graph.nodes]]
label = "Depot"
key = "name"
[[graph.relationships]]
from = "Parcel"
type = "FROM"
to = "Depot"
{since}
[model]
network = "{network}"
max_epochs = 80
graph_check = false
[engine]
folder = "{folder}"
"""
SINCE = '[graph.columns.Parcel]\nsent = {kind = "date", options = {since = "ordered"}}'
WRITE = """
UNWIND $rows AS row CREATE (p:Parcel) SET p += row
MERGE (d:Depot {name: 'd' + row.nr % 5}) CREATE (p)-[:FROM]->(d)
"""


def parcels(count, first, known, seed=3):
    """Parcels of any day; late ones are sent a week or more after they were ordered."""
    rng, rows = random.Random(seed + first), []
    for nr in range(first, first + count):
        late = rng.random() < 0.5
        day = date(2024, 1, 1) + timedelta(days=rng.randrange(900))
        after = timedelta(days=rng.randint(7, 12) if late else rng.randint(0, 6))
        state = ("late" if late else "fine") if known else None
        rows.append(
            {"nr": nr, "size": rng.random(), "ordered": day, "sent": day + after, "state": state}
        )
    return rows


@pytest.fixture
def make(graph, tmp_path, monkeypatch):
    graph.run(WRITE, rows=parcels(400, 0, known=True))
    monkeypatch.setenv("RINGFENCE_NEO4J_USER", graph.auth[0])
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    monkeypatch.setenv("RINGFENCE_SEED_KEY", PUBLISHED_SEED_KEY)
    opened = []

    def open_project(name, since, network):
        path = tmp_path / f"{name}.toml"
        values = {"uri": graph.uri, "folder": tmp_path / name, "name": name}
        path.write_text(CONFIG.format(since=since, network=network, **values))
        monkeypatch.setenv("RINGFENCE_AUDIT_URL", f"sqlite:///{tmp_path}/{name}.db")
        context = open_workspace(load(path))
        opened.append(context)
        workspace = context.__enter__()
        run_migrations(workspace)
        return workspace, path

    yield open_project
    for context in opened:
        context.__exit__(None, None, None)


@pytest.mark.parametrize("network", ["trees", "typed_sage"])
def test_a_difference_of_dates_serves_wherever_a_column_does(network, make, graph, tmp_path):
    bare, _ = make("bare", "", network)
    assert run_training(bare).calibration_accuracy < 0.7  # the control
    workspace, path = make("since", SINCE, network)
    trained = run_training(workspace)
    assert trained.calibration_accuracy > 0.85
    graph.run(WRITE, rows=parcels(30, 400, known=False))
    graph.run("MATCH (p:Parcel {nr: 401}) REMOVE p.sent")
    assert run_scoring(workspace).evaluated == 30
    kept, anew = kept_and_anew(workspace, tmp_path / "kept")
    np.testing.assert_array_equal(kept, anew)
    rows = read_card(workspace.store, workspace.project, trained.version).sections[1].rows
    assert ("column of Parcel nodes", "sent, also as days since ordered") in rows
    moved = [
        {reason.part.describe(): reason.moved for reason in why.reasons}
        for why in (run_explain(workspace, str(nr), why=True).reasons for nr in range(402, 408))
    ]
    for name in ("column sent", "column ordered"):  # without either there is no difference
        assert max(parts[name] for parts in moved) > 0.05
    assert not [finding for finding in run_doctor(path) if "days since" in finding.text]
    path.write_text(path.read_text().replace('since = "ordered"', 'since = "paid"'))
    (said,) = [finding for finding in run_doctor(path) if "days since paid" in finding.text]
    assert said.level == "error"
