"""Only the amount on the relationship decides the class: through the whole path."""

import json
import random
import shutil

import numpy as np
import pytest

from ringfence.connector.store.models import active_manifest
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.graph_benefit import NUMBERS, OWN_COLUMNS, PERMUTED, GraphBenefit
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import load_model
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.init import run_init
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
class_property = "kind"
[[graph.nodes]]
label = "Account"
key = "id"
role = "classified"
columns = ["age"]
created_at = "at"
[[graph.relationships]]
from = "Account"
type = "SENT"
to = "Account"
{columns}
[model]
network = "{network}"
max_epochs = 60
[engine]
folder = "{folder}"
"""
AMOUNT = 'columns = ["amount"]'
WRITE = """
UNWIND $rows AS row MERGE (a:Account {id: row.id})
SET a.age = row.age, a.kind = row.kind, a.at = CASE WHEN row.kind IS NULL THEN datetime()
  ELSE datetime() - duration({minutes: 10000 - row.id}) END
WITH count(*) AS n UNWIND $transfers AS t
MATCH (a:Account {id: t[0]}), (b:Account {id: t[1]}) CREATE (a)-[:SENT {amount: t[2]}]->(b)
"""
KNOWN = 400


class Bank:
    """Accounts of random age that send to random ones: mules send large amounts, others small."""

    def __init__(self, graph):
        self.graph, self.rng, self.count = graph, random.Random(11), 0

    def grow(self, accounts, known):
        rng, first = self.rng, self.count
        self.count += accounts
        kinds = {n: rng.choice(["mule", "plain"]) for n in range(first, self.count)}
        rows = [
            {"id": n, "age": rng.random(), "kind": kind if known else None}
            for n, kind in kinds.items()
        ]
        transfers = [
            [n, rng.randrange(self.count), rng.gauss(9 if kind == "mule" else 3, 4)]
            for n, kind in kinds.items()
            for _ in range(5)
        ]
        self.graph.run(WRITE, rows=rows, transfers=transfers)

    def shuffle(self):
        """The control: the same amounts, on other transfers."""
        sent = self.graph.run(
            "MATCH (a)-[r:SENT]->(b) RETURN elementId(r) AS id, r.amount AS amount "
            "ORDER BY a.id, b.id, amount"
        )
        amounts = [row["amount"] for row in sent]
        self.rng.shuffle(amounts)
        rows = [[row["id"], amount] for row, amount in zip(sent, amounts, strict=True)]
        self.graph.run(
            "UNWIND $rows AS row MATCH ()-[r:SENT]->() WHERE elementId(r) = row[0] "
            "SET r.amount = row[1]",
            rows=rows,
        )


@pytest.fixture
def bank(graph):
    bank = Bank(graph)
    bank.grow(KNOWN, known=True)
    return bank


@pytest.fixture
def make(graph, tmp_path):
    opened = []
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
        "RINGFENCE_SEED_KEY": PUBLISHED_SEED_KEY,
    }

    def open_project(name, columns=AMOUNT, network="trees"):
        path = tmp_path / f"{name}.toml"
        path.write_text(
            CONFIG.format(uri=graph.uri, name=name, folder=tmp_path / name, columns=columns,
                          network=network)
        )  # fmt: skip
        url = {"RINGFENCE_AUDIT_URL": f"sqlite:///{tmp_path}/{name}.db"}
        context = open_workspace(load_settings(path, environment | url))
        opened.append(context)
        workspace = context.__enter__()
        run_migrations(workspace)
        return workspace, path

    yield open_project
    for context in opened:
        context.__exit__(None, None, None)


def test_trees_read_the_amounts_and_know_nothing_without_them(bank, make):
    with_amounts = run_training(make("amounts")[0]).calibration_accuracy
    without = run_training(make("bare", columns="")[0]).calibration_accuracy
    bank.shuffle()
    shuffled = run_training(make("shuffled")[0]).calibration_accuracy
    assert with_amounts > 0.85
    assert without < 0.65
    assert shuffled < 0.65


@pytest.mark.parametrize("network", ["trees", "typed_sage", "blend"])
def test_a_version_with_relationship_columns_does_what_every_version_does(
    network, bank, make, graph, tmp_path, monkeypatch
):
    monkeypatch.setenv("RINGFENCE_NEO4J_USER", graph.auth[0])
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    monkeypatch.setenv("RINGFENCE_AUDIT_URL", f"sqlite:///{tmp_path}/project.db")
    workspace, path = make("project", network=network)
    trained = run_training(workspace)
    assert trained.calibration_accuracy > 0.8
    require_graph_check(workspace)
    assert run_repeat(workspace, trained.version).equal
    for step in range(3):
        bank.grow(20, known=False)
        graph.run("MATCH ()-[r:SENT]->() WITH r ORDER BY rand() LIMIT 3 SET r.amount = $x", x=step)
        graph.run("MATCH ()-[r:SENT]->() WITH r ORDER BY rand() LIMIT 2 DELETE r")
        report = run_scoring(workspace)
        assert report.evaluated == 20
        kept, anew = kept_and_anew(workspace, tmp_path / f"step{step}")
        np.testing.assert_array_equal(kept, anew)
    assert run_reconcile(workspace, repair=False).mirror.clean
    card = read_card(workspace.store, workspace.project, trained.version)
    assert ("column of SENT relationships", "amount, encoded as number") in card.sections[1].rows
    require_reasons(workspace)
    found = [finding.text for finding in run_doctor(path)]
    assert "columns of (:Account)-[:SENT]->(:Account): amount" in found


def require_graph_check(workspace):
    """The values help, and stay at the accounts that sent them wherever these end."""
    manifest = json.loads(active_manifest(workspace.store, workspace.project))
    benefit = GraphBenefit.from_manifest(manifest)
    own, numbers, permuted = (benefit.beside(name) for name in (OWN_COLUMNS, NUMBERS, PERMUTED))
    assert own.low > 0
    assert numbers.low > 0
    assert own.accuracy < 0.7
    assert numbers.accuracy < 0.7
    assert permuted.accuracy > 0.75  # of 69 nodes: a standard error is .05


def kept_and_anew(workspace, folder):
    """Outputs of all accounts with what the last run kept, and from nothing."""
    mapping, mirror = workspace.mapping, load_graph(workspace)
    model = load_model(workspace.models, active_manifest(workspace.store, workspace.project))
    relationships = inference_graph(mirror, mapping)
    rows = mirror.rows_of_label(0)
    copy = folder / "copy" / "t"
    shutil.copytree(workspace.tables, copy)
    places = (copy, folder / "anew" / "t")
    return [
        outputs_at(place, model, mirror, mapping, relationships, rows).logits for place in places
    ]


def require_reasons(workspace):
    """Exact reasons: p-values are those on record, and the amounts are among them."""
    told = run_explain(workspace, str(KNOWN + 45), why=True)
    why = told.reasons
    assert why.method == "exact"
    recorded = {value.class_: value.p for value in told.p_values}
    assert dict(zip(why.classes, why.p_values, strict=True)) == pytest.approx(recorded)
    moved = {reason.part.describe(): reason.moved for reason in why.reasons}
    assert "column SENT.amount" in moved
    assert max(moved_by_amounts(workspace, KNOWN + n) for n in range(40, 52)) > 0
    assert any(name.startswith("neighbour") for name in moved)


def moved_by_amounts(workspace, key):
    """How far p-values of a node move without the amounts; a leaf may be the same without them."""
    reasons = run_explain(workspace, str(key), why=True).reasons.reasons
    return next(r.moved for r in reasons if r.part.describe() == "column SENT.amount")


def test_init_proposes_the_columns_and_names_what_it_leaves_out(bank, graph, tmp_path, monkeypatch):
    monkeypatch.setenv("RINGFENCE_NEO4J_USER", graph.auth[0])
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    monkeypatch.setenv("RINGFENCE_AUDIT_URL", f"sqlite:///{tmp_path}/a.db")
    graph.run(
        "MATCH (a)-[r:SENT]->() SET r.currency = 'EUR', r.checked = a.kind, "
        "r.note = ['food', 'rent', 'gift'][toInteger(r.amount * 100) % 3]"
    )
    graph.run("MATCH (a:Account) WHERE a.id % 3 = 0 REMOVE a.kind")
    graph.run("MATCH (a:Account)-[r:SENT]->() WHERE a.kind IS NULL REMOVE r.checked")
    path = tmp_path / "proposed.toml"
    proposal = run_init(path, graph.uri, graph.auth[0], "Account", "proposed", force=True)
    (sent,) = proposal.relations
    assert {column.name: column.kind for column in sent.columns} == {
        "amount": "number", "note": "category",
    }  # fmt: skip
    left = {column.name: column.why for column in proposal.left_out}
    assert left["SENT.currency"].startswith("one value in all relationships of the sample; to use")
    assert "it comes with the class" in left["SENT.checked"]
    mapping = load_settings(path).mapping()
    assert mapping.relations[0].column_names == ("amount", "note")
    said = [finding.text for finding in run_doctor(path)]
    assert any(each.startswith("SENT.currency is not used: one value in all") for each in said)
    (checked,) = (each for each in said if each.startswith("SENT.checked is not used: "))
    assert "it comes with the class" in checked
    assert not any("could be columns" in each for each in said)
    text = path.read_text()
    path.write_text(text.replace('"note"', '"nothing"'))
    findings = run_doctor(path)
    assert any("has more that could be columns: note (category);" in each.text for each in findings)
    errors = [finding.text for finding in findings if finding.level == "error"]
    assert any("has the column nothing; there are: amount" in message for message in errors)


ODD = """
MATCH ()-[r:SENT]->() WITH r ORDER BY r.amount, elementId(r) WITH collect(r) AS sent
UNWIND range(0, size(sent) - 1, 3) AS at WITH sent[at] AS r, at
SET r.amount = CASE at % 4 WHEN 0 THEN 'nine' WHEN 1 THEN date('2026-01-01')
  WHEN 2 THEN true ELSE null END
"""


def test_amounts_whose_type_changes_are_missing_and_said_so(
    bank, make, graph, tmp_path, monkeypatch
):
    monkeypatch.setenv("RINGFENCE_NEO4J_USER", graph.auth[0])
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    monkeypatch.setenv("RINGFENCE_AUDIT_URL", f"sqlite:///{tmp_path}/project.db")
    workspace, path = make("project")
    run_training(workspace)
    bank.grow(20, known=False)
    graph.run(ODD)
    graph.run("MATCH (a:Account)-[r:SENT]->() WHERE a.kind IS NULL SET r.amount = ['a', 'b']")
    report = run_scoring(workspace)
    assert report.evaluated == 20
    kept, anew = kept_and_anew(workspace, tmp_path / "odd")
    np.testing.assert_array_equal(kept, anew)
    assert np.isfinite(kept).all()
    said = [finding.text for finding in run_doctor(path)]
    assert any("amount is of little use: values of several types" in text for text in said)
    again = run_training(workspace)  # the next version goes without the column, in words
    card = dict(read_card(workspace.store, workspace.project, again.version).sections[1].rows)
    (why,) = (why for name, why in card.items() if name.startswith("column left out"))
    assert "values of several types" in why


def test_amounts_that_appear_only_later_disturb_no_version_and_serve_the_next_one(
    bank, make, graph, tmp_path
):
    graph.run("MATCH ()-[r:SENT]->() SET r.later = r.amount REMOVE r.amount")
    workspace, _ = make("project")
    first = run_training(workspace)
    card = dict(read_card(workspace.store, workspace.project, first.version).sections[1].rows)
    (why,) = (why for name, why in card.items() if name.startswith("column left out"))
    assert "no relationship of the sample has a value" in why
    bank.grow(20, known=False)  # these have amounts
    assert run_scoring(workspace).evaluated == 20
    kept, anew = kept_and_anew(workspace, tmp_path / "first")
    np.testing.assert_array_equal(kept, anew)
    assert first.calibration_accuracy < 0.65
    graph.run("MATCH ()-[r:SENT]->() WHERE r.later IS NOT NULL SET r.amount = r.later")
    second = run_training(workspace)
    assert second.calibration_accuracy > 0.8
    card = read_card(workspace.store, workspace.project, second.version)
    assert ("column of SENT relationships", "amount, encoded as number") in card.sections[1].rows
