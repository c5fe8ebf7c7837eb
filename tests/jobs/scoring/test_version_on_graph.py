"""One version on one graph: run, rescore, shadow, comparison and explanation agree to the bit.

A project is trained, on one label, on several and with trees; its nodes calibrate later runs and
its level adapts. The settings of every promise, rule and calibration set are then applied to the
same version, on the same graph, to the same due nodes.
"""

import itertools
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sqlalchemy import func, select

from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import no_progress
from ringfence.connector.store import tables
from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.models import active_manifest
from ringfence.connector.store.runs import Decision
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.explanation.find import find_reasons
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.samples.accounts import Batch, batches, load, reveal, sample_toml
from ringfence.jobs.scoring import rescore, shadow
from ringfence.jobs.scoring.calibration.calibration_set import CalibrationSet
from ringfence.jobs.scoring.decision import decide_due
from ringfence.jobs.scoring.due import DueNodes
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.scoring.version_on_graph import calibrate_version
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.telemetry.stopwatch import Stopwatch
from ringfence.jobs.training.comparison import ComparedNodes, version_outcome
from ringfence.jobs.training.train import run_training
from ringfence.models.sample.accounts import SampleGraph, sample_graph
from tests.graph_copy import Graph, empty_graph

RUNS = 7  # nodes of a run join the calibration after five more runs at the earliest
ZONES = "MATCH (n:Account) SET n.zone = CASE n.id % 2 WHEN 0 THEN 'north' ELSE 'south' END"
REGIONS = """
MATCH (a:Account) WHERE NOT (a)-[:IN]->()
MERGE (r:Region {name: a.region}) SET r.size = size(a.region)
CREATE (a)-[:IN]->(r)
"""
SEVERAL_LABELS = """[graph]
class_property = "kind"

[[graph.nodes]]
label = "Account"
key = "id"
role = "classified"
columns = ["features"]
created_at = "created_at"

[[graph.nodes]]
label = "Region"
key = "name"
columns = ["size"]

[[graph.relationships]]
from = "Account"
type = "PAID"
to = "Account"
created_at = "created_at"

[[graph.relationships]]
from = "Account"
type = "IN"
to = "Region"

[model]
learning_rate"""
FORMS = ("one label", "several labels", "trees", "blend")
PROMISES = {
    "marginal": {},
    "class": {"promise": "class", "classes": {"mule": 0.25}},
    "group": {"promise": "group", "group": "zone"},
}
RULES = ("auto", "NodeEx", "EdgeEx")
CALIBRATION_SETS = {
    "frozen": {},
    "growing": {"adapt": True},
    "window": {"adapt": True, "window_nodes": 150},  # fewer than have joined,
}
CASES = [
    pytest.param(
        {**PROMISES[promise], "rule": rule, "calibration_set": set_, **CALIBRATION_SETS[set_]},
        id=f"{promise}-{rule}-{set_}",
    )
    for promise, rule, set_ in itertools.product(PROMISES, RULES, CALIBRATION_SETS)
    if rule != "EdgeEx" or set_ == "frozen"  # 1 / degree is refused for nodes that join
]


@dataclass(frozen=True, slots=True)
class Project:
    """A project with runs behind it and nodes that are due."""

    workspace: Workspace

    def under(self, **conformal):
        """The same project under other settings of `[conformal]`."""
        settings = ConformalSettings(alpha=0.2, score="APS")
        settings = settings.model_copy(update=conformal)  # a window may be small here
        changed = self.workspace.settings.model_copy(update={"conformal": settings})
        return replace(self.workspace, settings=changed)


def load_part(workspace, sample: SampleGraph, batch: Batch, labelled):
    load(workspace.graph, sample, batch, labelled, no_progress)
    workspace.graph.run(REGIONS)  # read where several labels are mapped


def project_toml(uri: str, form: str) -> str:
    text = sample_toml(uri, "test")
    if form != "one label":
        head, _, rest = text.partition("[graph]")
        text = head + SEVERAL_LABELS + rest.partition("learning_rate")[2]
    network = f'network = "{form}"\n' if form in ("trees", "blend") else ""
    return text.replace(
        "learning_rate = 0.01",
        f"{network}learning_rate = 0.05\nmax_epochs = 25\ngraph_check = false",
    )


@pytest.fixture(scope="module", params=FORMS)
def project(request, neo4j_server, neo4j_driver, tmp_path_factory):
    """Seven runs of a version with a growing calibration set; a batch of nodes is due."""
    graph = Graph(neo4j_driver, neo4j_server.uri, neo4j_server.auth)
    empty_graph(graph)
    folder = tmp_path_factory.mktemp("version")
    path = folder / "ringfence.toml"
    path.write_text(project_toml(graph.uri, request.param), encoding="utf-8")
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
        "RINGFENCE_AUDIT_URL": f"sqlite:///{folder / 'ringfence.db'}",
    }
    settings = load_settings(path, environment)
    conformal = ConformalSettings(
        alpha=0.2, rule="auto", score="APS", calibration_set="growing", adapt=True
    )
    with open_workspace(settings.model_copy(update={"conformal": conformal})) as workspace:
        assert len(workspace.mapping.nodes) == (1 if request.param == "one label" else 2)
        run_migrations(workspace)
        yield play(workspace)


def play(workspace) -> Project:
    """Train, then score small batches; the classes of each become known after the next one."""
    sample = sample_graph(500, seed=3, mean_degree=10.0)
    first, *parts, due = batches(sample, [300, *[20] * RUNS, 60])
    known = np.random.default_rng(0).random(sample.nodes) < 0.5
    nobody = np.zeros(sample.nodes, np.bool_)
    load_part(workspace, sample, first, known)
    run_training(workspace)
    seen = first.nodes[~known[first.nodes]]
    for part in parts:
        load_part(workspace, sample, part, nobody)
        report = run_scoring(workspace)
        reveal(workspace.graph, sample, seen)
        run_audit(workspace)
        seen = part.nodes
    load_part(workspace, sample, due, nobody)
    workspace.graph.run(ZONES)
    assert report.run.level != 0.2  # control: levels have moved
    return Project(workspace)


def decide(workspace):
    """What a run would decide now; nothing is recorded, so that its nodes stay due."""
    with write_session(workspace, no_progress) as session:
        manifest = active_manifest(workspace.store, workspace.project)
        model = model_files.load_model(workspace.models, manifest)
        read = read_graph(workspace, session.writer, no_progress)
        due, decision = decide_due(workspace, model, read, Stopwatch())
        save_graph(workspace, read.mirror)
    return Given(workspace, model, read.mirror, due, decision)


@dataclass(frozen=True, slots=True)
class Given:
    """What a run would decide, and what the other four are compared with."""

    workspace: Workspace
    model: SavedModel
    mirror: Mirror
    due: DueNodes
    decision: Decision

    @property
    def keys(self):
        return self.mirror.keys.take(self.due.rows.tolist())

    @property
    def p_values(self):
        return self.decision.predictions.p_values

    @property
    def sets_at_alpha(self):
        version = calibrate_version(self.workspace, self.model, self.mirror, at_alpha=True)
        sets = self.p_values > version.promise.levels[0]
        if self.workspace.settings.conformal.nonempty:
            likeliest = self.decision.predictions.scores.argmax(axis=1)
            sets[np.arange(len(sets)), likeliest] |= ~sets.any(axis=1)
        return sets


@pytest.mark.parametrize("conformal", CASES)
def test_all_five_agree_to_the_bit(project, conformal):
    run = decide(project.under(**conformal))
    used, alpha = run.decision.facts.levels["used"][0], run.decision.facts.alpha
    assert (used != alpha) == ("adapt" in conformal or "classes" in conformal)
    require_agreement(run)


def test_all_five_agree_on_a_score_that_looks_at_neighbours(project):
    require_agreement(decide(project.under(rule="NodeEx", score="DAPS")))


def test_all_five_fill_empty_sets(project):
    """At an alpha that leaves sets empty, every path puts the same class into them."""
    plain = decide(project.under(alpha=0.9))
    filled = decide(project.under(alpha=0.9, nonempty=True))
    empty = ~plain.decision.predictions.sets.any(axis=1)
    assert 0 < empty.sum() < len(empty)
    assert (filled.decision.predictions.sets.sum(axis=1)[empty] == 1).all()
    for place in np.flatnonzero(empty)[:2].tolist():
        require_equal_explanation(filled, place)
    require_agreement(filled)


def require_agreement(run):
    require_equal_rescores(run)
    require_equal_shadow_sets(run)
    require_equal_comparison(run)
    require_equal_explanations(run)


def require_equal_rescores(run):
    report = run_rescoring(run.workspace, [key.partition(":")[2] for key in run.keys], "a test")
    expected = {record.node_key: record for record in run.decision.predictions.records()}
    assert report.sets == {key: record.classes for key, record in expected.items()}
    newest = select(func.max(tables.rescore.c.at_ns)).scalar_subquery()
    with run.workspace.store.reading() as connection:
        rows = connection.execute(select(tables.rescore).where(tables.rescore.c.at_ns == newest))
        stored = {row.node_key: (json.loads(row.p_values), json.loads(row.scores)) for row in rows}
    assert stored == {
        key: (list(record.p_values), list(record.scores)) for key, record in expected.items()
    }


def require_equal_shadow_sets(run):
    with pytest.MonkeyPatch.context() as patch:  # the version in use stands for a candidate
        patch.setattr(Basis, "require_never_used", Basis.require_active)
        row, candidate = shadow._evaluate(run.workspace, run.model.version, run.mirror, run.due, 1)
    assert np.array_equal(candidate.p_values, run.p_values)
    assert np.array_equal(candidate.scores, run.decision.predictions.scores)
    assert np.array_equal(candidate.sets, run.sets_at_alpha)
    assert row.n_calibration == run.decision.facts.n_calibration


def require_equal_comparison(run):
    """A comparison keeps sizes and hits: with each class as the true one they tell the sets."""
    classes, rows, expected = run.model.classes, run.due.rows, run.sets_at_alpha
    tiled = np.tile(rows, len(classes))
    truth = np.repeat(np.arange(len(classes)), len(rows))
    nodes = ComparedNodes(tiled, run.keys * len(classes), truth, classes)
    outcome = version_outcome(run.workspace, run.model, run.mirror, nodes)
    assert np.array_equal(outcome.sets.sizes, np.tile(expected.sum(axis=1), len(classes)))
    assert np.array_equal(outcome.sets.covered, expected.T.ravel())


def require_equal_explanations(run):
    for place in (0, len(run.keys) // 2):
        require_equal_explanation(run, place)


def require_equal_explanation(run, place):
    used, classes = run.decision.facts.levels["used"][0], run.model.classes
    levels = used if isinstance(used, dict) else dict.fromkeys(classes, used)
    why = find_reasons(run.workspace, run.keys[place], run.model.version, levels)
    inside = run.decision.predictions.sets[place].tolist()
    assert why.p_values == tuple(run.p_values[place].tolist())
    assert why.classes_in_set == tuple(itertools.compress(classes, inside))


def calibrate_as_before(workspace, model, mirror):
    """The training's calibration nodes at alpha, whatever the runs are calibrated with."""
    base = calibration_members(workspace.store, workspace.project, model.version, model.classes)
    version = calibrate_version(workspace, model, mirror, at_alpha=True)
    return replace(version, calibration=CalibrationSet(tuple(base), (), (), 0, {}))


def test_a_rescore_that_is_calibrated_with_the_training_alone_is_found(project, monkeypatch):
    """Negative control: what `ringfence rescore` did until it was calibrated as a run."""
    workspace = project.under(rule="auto", calibration_set="growing", adapt=True)
    monkeypatch.setattr(
        rescore,
        "calibrate_on_record",
        lambda held, _, model, mirror: calibrate_as_before(held, model, mirror),
    )
    with pytest.raises(AssertionError):
        require_equal_rescores(decide(workspace))
