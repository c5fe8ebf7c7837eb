"""What the relationships bring, on graphs with known answers: does `train` say the right thing?"""

import json

import numpy as np
import pytest

from ringfence.connector.store.models import find_active_manifest
from ringfence.jobs.cli.commands.model.train import print_training
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.graph_benefit import GraphBenefit
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.training.train import run_training
from tests.orders import order_projects
from tests.stores import sqlite

pytestmark = pytest.mark.slow
make = order_projects

QUICK = "hidden = 32\nmax_epochs = 150\nlearning_rate = 0.03"
SCORERS = ("typed_sage", "trees", "blend")
WORLD = """
UNWIND $orders AS row
MATCH (o:Order {id: row.id}), (s:Shop {name: 'shop ' + row.shop})
CREATE (o)-[:AT]->(s)
SET o.amount = row.amount, o.note = null, o.risk = row.risk
SET s.country = null, s.size = row.shop + 0.5
"""


def by_amount(amount, shop, draw):
    """The class follows from the order alone."""
    return amount > 15


def by_shop(amount, shop, draw):
    """The class follows from the size of the shop, but for a tenth of the orders."""
    return (shop >= 10) != (draw < 0.1)


def is_shop(amount, shop, draw):
    """The class is the size of the shop in other words."""
    return shop >= 10


def trained_in(graph, make, rule, model):
    """A project trained on 600 orders whose class follows a rule, at shops drawn at random."""
    workspace = make(f"{model}\n{QUICK}")
    rng = np.random.default_rng(7)
    orders = [
        {"id": at, "shop": int(rng.integers(20)), "amount": float(rng.uniform(0, 30))}
        for at in range(600)
    ]
    for order in orders:
        high = rule(order["amount"], order["shop"], rng.random())
        order["risk"] = "high" if high else "low"
    graph.run("MATCH (:Order)-[old]-() DELETE old")
    graph.run(WORLD, orders=orders)
    trained = run_training(workspace)
    manifest = json.loads(find_active_manifest(workspace.store, workspace.project))
    return workspace, trained, GraphBenefit.from_manifest(manifest)


@sqlite
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_graph_that_tells_nothing_is_said_to_bring_nothing(graph, make, scorer):
    _, trained, benefit = trained_in(graph, make, by_amount, f'network = "{scorer}"')
    assert benefit.verdict in ("nothing", "harm")
    assert not benefit.is_suspicious
    assert benefit.beside("own columns").accuracy > 0.85  # own columns tell it
    assert benefit.fits == (6 if scorer == "blend" else 3)
    assert f"{benefit.fits} more fits took" in trained.graph[1]


@sqlite
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_graph_that_decides_is_said_to_help(graph, make, scorer, capsys):
    workspace, trained, benefit = trained_in(graph, make, by_shop, f'network = "{scorer}"')
    assert benefit.verdict == "help"
    assert not benefit.is_suspicious  # a tenth is chance
    assert benefit.beside("permuted ends").gain > 0.1
    assert trained.graph[0].startswith("the relationships help")
    assert any("relationships help" in line for line in trained.comparison.sentences)
    card = read_card(workspace.store, workspace.project, trained.version)
    section = next(part for part in card.sections if part.title == "What the relationships bring")
    assert dict(section.rows)["verdict"].startswith("the relationships help")
    print_training(trained)
    assert "The relationships help" in capsys.readouterr().out


@sqlite
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_class_that_stands_at_a_neighbour_is_suspected_and_named(
    graph, make, scorer, tmp_path, monkeypatch
):
    _, trained, benefit = trained_in(graph, make, is_shop, f'network = "{scorer}"')
    assert benefit.is_suspicious
    assert "rev_AT Shop: mean size" in benefit.leak
    assert any(line.startswith("CHECK: with the relationships") for line in trained.graph)
    for name, value in make.environment.items():
        monkeypatch.setenv(name, value)
    findings = run_doctor(tmp_path / "state.toml")
    (said,) = (one for one in findings if "may stand at a neighbour" in one.text)
    assert said.level == "warning"
    assert f"ringfence models show {trained.version}" in said.fix


@sqlite
def test_the_check_can_be_left_out_and_changes_no_weight(graph, make):
    model = 'network = "trees"\nholdout = 0'  # a holdout is drawn by the project's name
    _, checked, _ = trained_in(graph, make, by_shop, model)
    other = make(f"{model}\n{QUICK}\ngraph_check = false", folder="other")
    without = run_training(other)
    assert without.graph == ()
    manifest = json.loads(find_active_manifest(other.store, other.project))
    assert "graph_check" not in manifest
    assert without.version[-8:] == checked.version[-8:]  # the digest of the weights
