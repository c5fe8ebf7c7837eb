"""A graph of several labels with raw columns through migrate, train, score, audit and rescore."""

import json
import shutil

import numpy as np
import pytest

from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.lifecycle.promotion import run_promotion, run_rollback
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.repeat import run_repeat
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import run_explain
from tests.forms import PUBLISHED_SEED_KEY

pytestmark = pytest.mark.slow

CONFIG = """
project = "{name}"
[neo4j]
uri = "{uri}"
[graph]
class_property = "risk"
[[graph.nodes]]
label = "Order"
key = "id"
role = "classified"
columns = ["amount", "day", "note", "constant"]
[[graph.nodes]]
label = "Shop"
key = "name"
columns = ["country", "founded"]
[[graph.nodes]]
label = "Device"
key = "id"
[[graph.relationships]]
from = "Order"
type = "AT"
to = "Shop"
[[graph.relationships]]
from = "Device"
type = "PLACED"
to = "Order"
[[graph.relationships]]
from = "Shop"
type = "REFUSED"
to = "Order"
after_evaluation = true
[model]
hidden = 8
max_epochs = 40
graph_check = false
{model}
[engine]
folder = "{folder}"
"""

SHOPS = """
UNWIND range(0, 19) AS i
CREATE (:Shop {name: 'shop ' + i, country: ['de', 'fr', 'it', null][i % 4],
  founded: date('1990-01-01') + duration({months: i})})
"""
ORDERS = """
UNWIND range($first, $first + $count - 1) AS i
MATCH (s:Shop {name: 'shop ' + (i * 7 % 20)})
MERGE (d:Device {id: i % 50})
CREATE (o:Order {id: i, amount: CASE i % 9 WHEN 0 THEN null ELSE i * 1.5 END, constant: 1,
  day: date('2026-01-01') + duration({days: i % 60}), note: 'order of ' + (i % 5) + ' things'})
CREATE (o)-[:AT]->(s), (d)-[:PLACED]->(o)
SET o.risk = CASE WHEN $known THEN CASE s.country WHEN 'de' THEN 'high' ELSE 'low' END END
"""


@pytest.fixture
def make(graph, tmp_path):
    """Open a typed project on a graph of 300 labelled orders."""
    opened = []

    def open_project(model="", folder="state"):
        path = tmp_path / f"{folder}.toml"
        path.write_text(
            CONFIG.format(uri=graph.uri, model=model, folder=tmp_path / folder, name=folder)
        )
        environment = {
            "RINGFENCE_NEO4J_USER": graph.auth[0],
            "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
            "RINGFENCE_SEED_KEY": PUBLISHED_SEED_KEY,
            "RINGFENCE_AUDIT_URL": f"sqlite:///{tmp_path / folder}.db",
        }
        context = open_workspace(load_settings(path, environment))
        opened.append(context)
        workspace = context.__enter__()
        run_migrations(workspace)
        return workspace

    graph.run(SHOPS)
    graph.run(ORDERS, first=0, count=300, known=True)
    yield open_project
    for context in opened:
        context.__exit__(None, None, None)


def test_the_whole_path_of_a_typed_graph(graph, make):
    workspace = make()
    trained = run_training(workspace)
    assert trained.network == "typed_sage"
    assert trained.calibration_accuracy > 0.9  # the class stands at the shop
    manifest = json.loads(next(workspace.models.glob("*/manifest.json")).read_text())
    assert set(manifest["typed"]["left_out"]) == {"Order.constant"}
    again = run_repeat(workspace, trained.version)
    assert (again.equal, again.differences) == (True, ())

    graph.run(ORDERS, first=300, count=40, known=False)
    first = run_scoring(workspace)
    assert (first.evaluated, first.new_nodes) == (40, 40)
    assert "nothing was kept" in first.run.notes[0]

    graph.run(ORDERS, first=340, count=25, known=False)
    graph.run("MATCH (s:Shop {name: 'shop 3'}) SET s.country = 'fr'")
    graph.run("MATCH (o:Order {id: 5}), (s:Shop {name: 'shop 9'}) CREATE (o)-[:AT]->(s)")
    graph.run("MATCH (s:Shop) MATCH (o:Order) WHERE o.id < 9 CREATE (s)-[:REFUSED]->(o)")
    second = run_scoring(workspace)
    assert second.evaluated == 25
    _explain_typed(workspace)
    assert "sums of hubs were kept" in second.run.notes[0]
    assert run_scoring(workspace).evaluated == 0

    graph.run("MATCH (o:Order)-[:AT]->(s) WHERE o.risk IS NULL "
              "SET o.risk = CASE s.country WHEN 'de' THEN 'high' ELSE 'low' END")  # fmt: skip
    run_audit(workspace)
    assert run_rescoring(workspace, ["350"], "an appeal").sets


def _explain_typed(workspace):
    """Why: neighbours by relationship type, raw columns; nothing is written."""
    files = sorted((file, file.stat().st_mtime_ns) for file in workspace.folder.rglob("*"))
    told = run_explain(workspace, "350", why=True)
    assert sorted((f, f.stat().st_mtime_ns) for f in workspace.folder.rglob("*")) == files
    why = told.reasons
    recorded = {one.class_: one.p for one in told.p_values}
    assert dict(zip(why.classes, why.p_values, strict=True)) == pytest.approx(recorded)
    parts = {one.part.describe(): one for one in why.reasons}
    assert {"column amount", "column day", "column note"} <= set(parts)
    assert "column constant" not in parts  # no encoder was made of it
    shop, device = "neighbour Shop shop 10 by AT", "neighbour Device 0 by PLACED"
    assert {shop, device} <= set(parts)
    assert parts[shop].moved > parts[device].moved  # the class stands at the shop
    assert not any("REFUSED" in name for name in parts)  # carries no message
    _compare_values(workspace.graph, why, parts, shop)


def _compare_values(graph, why, parts, shop):
    """Values beside parts are those of the graph: among known orders, and of a shop's others."""
    likeliest = why.classes[why.likeliest]
    (row,) = graph.read(
        "MATCH (n:Order {id: 350}) MATCH (o:Order) WHERE o.risk <> $likeliest "
        "WITH n.amount AS amount, o.risk AS risk, count(*) AS known, "
        "sum(CASE WHEN n.amount < o.amount THEN 1 ELSE 0 END) AS above, "
        "sum(CASE WHEN n.amount > o.amount THEN 1 ELSE 0 END) AS below "
        "RETURN * ORDER BY known DESC LIMIT 1",
        likeliest=likeliest,
    )
    way, share = max(("lower", row["above"]), ("higher", row["below"]), key=lambda pair: pair[1])
    assert parts["column amount"].value == (
        f"{row['amount']:.6g}, {way} than {100 * share / row['known']:.0f} % of "
        f"{row['known']} known {row['risk']} nodes"
    )
    (near,) = graph.read(
        "MATCH (s:Shop {name: 'shop 10'})<-[:AT]-(o:Order) WHERE o.id <> 350 "
        "WITH DISTINCT o RETURN count(o) AS orders, "
        "sum(CASE o.risk WHEN $likeliest THEN 1 ELSE 0 END) AS alike",
        likeliest=likeliest,
    )
    assert near["orders"] > near["alike"]  # else the two could be mixed up
    assert parts[shop].value == (
        f"shared with {near['orders']} other Order nodes, of which {near['alike']} are {likeliest}"
    )
    assert parts[shop].as_json()["value"] == parts[shop].value


def test_what_is_kept_changes_no_bit(graph, make):
    """Sets and p-values after three runs are those of tables that are made anew each time."""
    results = {}
    for name in ("kept", "anew"):
        workspace = make(folder=name)
        results[name] = (workspace, run_training(workspace))
    assert results["kept"][1].validation_accuracy == results["anew"][1].validation_accuracy
    for step in range(3):
        graph.run(ORDERS, first=300 + 10 * step, count=10, known=False)
        graph.run("MATCH (s:Shop {name: 'shop 2'}) SET s.founded = date('2000-01-01') "
                  "+ duration({days: $step})", step=step)  # fmt: skip
        found = []
        for name, (workspace, _) in results.items():
            if name == "anew":
                for file in workspace.tables.rglob("*"):
                    if file.is_file():
                        file.unlink()
            report = run_scoring(workspace)
            found.append((report.run.threshold, report.sizes, report.run.calibration_scores))
        assert found[0] == found[1]


def test_after_deletions_and_changes_what_is_kept_still_changes_no_bit(graph, make):
    """Deleted orders, shops and devices, changed columns: as if nothing had been kept."""
    results = {name: make(folder=name) for name in ("kept", "anew")}
    for workspace in results.values():
        run_training(workspace)
    steps = (
        "MATCH (o:Order {id: 301}) DETACH DELETE o",
        "MATCH (s:Shop {name: 'shop 4'}) DETACH DELETE s",
        "MATCH (d:Device {id: 7}) DETACH DELETE d",
        "MATCH (o:Order {id: 12})-[r:AT]->() DELETE r SET o.amount = 1.0",
    )
    for step, change in enumerate(steps):
        graph.run(ORDERS, first=300 + 10 * step, count=10, known=False)
        if step:
            graph.run(change)
        found = []
        for name, workspace in results.items():
            if name == "anew":
                shutil.rmtree(workspace.tables, ignore_errors=True)
                shutil.rmtree(workspace.mirror, ignore_errors=True)
            report = run_scoring(workspace)
            found.append((report.run.threshold, report.sizes, report.evaluated))
            assert name == "anew" or step == 0 or "sums of hubs were kept" in report.run.notes[0]
        assert found[0] == found[1]


def test_reconcile_finds_what_differs_in_any_label_and_repairs_it(graph, make):
    workspace = make()
    run_training(workspace)
    graph.run(ORDERS, first=300, count=20, known=False)
    run_scoring(workspace)
    assert run_reconcile(workspace, repair=False).clean
    graph.run("MATCH (s:Shop {name: 'shop 1'}) SET s.country = 'es'")
    graph.run("MATCH (o:Order {id: 3}) DETACH DELETE o")
    found = run_reconcile(workspace, repair=True)
    assert (found.mirror.changed, found.mirror.deleted, found.mirror.edges_deleted) == (1, 1, 2)
    assert run_reconcile(workspace, repair=False).clean
    graph.run(ORDERS, first=320, count=5, known=False)
    assert run_scoring(workspace).evaluated == 5


@pytest.mark.parametrize("model", ["batch_size = 64", "layers = 1\ndegrees = true", "layers = 3"])
def test_other_settings_of_the_network(graph, make, model):
    workspace = make(model)
    assert run_training(workspace).calibration_accuracy > 0.8
    graph.run(ORDERS, first=300, count=10, known=False)
    assert run_scoring(workspace).evaluated == 10


OWN = """
import torch

from ringfence.models.networks import pyg

class Net(torch.nn.Module):
    def __init__(self, metadata, in_features, classes, hidden):
        super().__init__()
        self.label = metadata[0][0]
        layers = {
            kind: pyg.SAGEConv((in_features[kind[0]], in_features[kind[2]]), classes)
            for kind in metadata[1] if kind[2] == self.label
        }
        self.layer = pyg.HeteroConv(layers, aggr="sum")

    def forward(self, x_dict, edge_index_dict):
        return self.layer(x_dict, edge_index_dict)[self.label]
"""


@pytest.mark.filterwarnings("ignore:There exist node types")  # PyG's, of a module's last layer
def test_a_users_own_module(graph, make, tmp_path, monkeypatch):
    (tmp_path / "own_typed_net.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    workspace = make('network = "own_typed_net:Net"')
    run_training(workspace)
    graph.run(ORDERS, first=300, count=10, known=False)
    report = run_scoring(workspace)
    assert report.evaluated == 10
    assert "no incremental kernel" in report.run.notes[0]
    why = run_explain(workspace, "305", why=True).reasons
    assert why.method == "GNNExplainer"
    found = {one.part.describe(): one.weight for one in why.reasons}
    (shop,) = (name for name in found if name.startswith("neighbour Shop"))
    assert shop == f"neighbour Shop shop {305 * 7 % 20} by AT"
    assert any(name.startswith("neighbour Device") for name in found)
    assert {"column amount", "column day"} <= set(found)
    assert all(0 <= weight <= 1 for weight in found.values())
    assert run_explain(workspace, "305", why=True).reasons == why


def test_damaged_tables_are_made_again(graph, make):
    workspace = make()
    run_training(workspace)
    for step in range(2):
        graph.run(ORDERS, first=300 + 10 * step, count=10, known=False)
        report = run_scoring(workspace)
        (file,) = workspace.tables.rglob("encoded.1")
        raw = bytearray(file.read_bytes())
        raw[40] ^= 1
        file.write_bytes(raw)
    assert "damaged (encoded.1)" in report.run.notes[0]
    assert np.isfinite(report.run.threshold)


@pytest.mark.long
def test_encoded_rows_go_when_a_version_retires_and_come_back_with_it(graph, make):
    """Dropped when another one is promoted, made again from the mirror after a rollback."""
    workspace = make()
    first = run_training(workspace).version
    graph.run(ORDERS, first=300, count=10, known=False)
    run_scoring(workspace)
    before = {file.name: file.read_bytes() for file in workspace.tables.rglob("encoded.*")}
    assert set(before) == {"encoded.0", "encoded.1", "encoded.2"}

    second = run_training(workspace).version
    run_promotion(workspace, second, "newer")
    assert not list(workspace.tables.rglob("encoded.*"))
    graph.run(ORDERS, first=310, count=10, known=False)
    run_scoring(workspace)
    (place,) = workspace.tables.iterdir()
    assert place.name.startswith(f"{second}-")

    run_rollback(workspace, "the older one was better")
    assert not list(workspace.tables.iterdir())
    graph.run(ORDERS, first=320, count=10, known=False)
    report = run_scoring(workspace)
    assert report.evaluated == 10
    (place,) = workspace.tables.iterdir()
    assert place.name.startswith(f"{first}-")
    again = (place / "encoded.1").read_bytes()
    assert sorted(chunks(again, 20)) == sorted(chunks(before["encoded.1"], 20))  # the same 20 shops


def chunks(raw, rows):
    """The rows of an encoded file."""
    width = len(raw) // rows
    return [raw[at : at + width] for at in range(0, len(raw), width)]
