"""A throw-away score, rule, promise and calibration set: one registry entry each, then the path.

Nothing but the entries below tells the product of them. They are configured, trained with, recorded
in the manifest and in SQL, decide who judges whom, and are told in notes, coverage and sentences.
"""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from pydantic import ValidationError

from ringfence.connector.store import runs, tables
from ringfence.jobs.auditing.audit import count_coverage, run_audit
from ringfence.jobs.config.reference import reference
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.promise import promise_of_run
from ringfence.models.calibration.sets.base import CalibrationSetKind
from ringfence.models.calibration.sets.registry import CALIBRATION_SETS
from ringfence.models.conformal.strata import one_stratum
from ringfence.models.promise.base import PromiseKind
from ringfence.models.promise.registry import PROMISES
from ringfence.models.rules.base import Part, Rule
from ringfence.models.rules.registry import RULES
from ringfence.models.scores.base import ConformityScore
from ringfence.models.scores.registry import SCORES
from tests.end_to_end.test_own_promises import rows_of, with_conformal

ADDED = {"score": "ODDS", "rule": "RootEx", "promise": "halves", "calibration_set": "drawn"}
FEW, MANY = "few neighbours", "many neighbours"


@pytest.fixture
def sql_url(tmp_path):
    return f"sqlite:///{tmp_path / 'ringfence.db'}"


def odds(probabilities, u):
    return np.asarray(probabilities) / (1.0 + 1e-9 - np.asarray(probabilities))


def odds_true(probabilities, u, classes):
    return odds(probabilities, u)[np.arange(len(classes)), classes]


class RootEx(Rule):
    """Nodes count by 1 / root of their degree."""

    name = "RootEx"
    within = "by roots of degrees"
    assumes = "edge"
    weighs_nodes = True

    def strata(self, promise, degrees, drift=None):
        weights, n = self.calibration_weights(degrees, drift)
        return one_stratum(n, len(degrees.due), weights)

    def calibration_weights(self, degrees, drift):
        return 1.0 / np.sqrt(1.0 + degrees.calibration), len(degrees.calibration)


class Halves(PromiseKind):
    """1 - alpha for nodes of few and for nodes of many neighbours."""

    name = "halves"

    def strata(self, promise, nodes, options):
        degrees, middle = nodes.degrees, np.median(nodes.degrees.calibration)
        parts = [
            Part(FEW, degrees.calibration <= middle, np.flatnonzero(degrees.due <= middle)),
            Part(MANY, degrees.calibration > middle, np.flatnonzero(degrees.due > middle)),
        ]
        of_parts = [
            promise.rule.part_strata(promise, degrees, part, nodes.drift)
            for part in parts
            if len(part.due)
        ]
        return [stratum for strata in of_parts for stratum in strata], ("divided into halves",)

    def within(self, options):
        return ", inside each half"

    def share(self, alpha, options):
        return f"{100 * (1 - alpha):g} % of each half are covered"


class DrawnSet(CalibrationSetKind):
    """Half of the nodes of known class, by their own numbers."""

    name = "drawn"

    def choose(self, evaluated_in, draw, window_nodes, classes, promised):
        return draw() < 0.5

    def describe_nodes(self, window_nodes):
        return "half of known class"

    def describe_training(self, window_nodes, calibration):
        return "half of the nodes of known class calibrate"


KINDS = {
    "score": ConformityScore("ODDS", odds, odds_true, safe_without_bands=True),
    "rule": RootEx(),
    "promise": Halves(),
    "calibration_set": DrawnSet(),
}
REGISTRIES = {
    "score": SCORES,
    "rule": RULES,
    "promise": PROMISES,
    "calibration_set": CALIBRATION_SETS,
}


@pytest.fixture
def added(monkeypatch):
    """One entry in each registry, which is the line that a new file asks for."""
    for setting, kind in KINDS.items():
        monkeypatch.setitem(REGISTRIES[setting], kind.name, kind)


@pytest.mark.parametrize("setting", ADDED)
def test_a_kind_is_a_value_of_its_setting_once_it_is_registered(setting, monkeypatch):
    name, registry = ADDED[setting], REGISTRIES[setting]
    with pytest.raises(ValidationError) as refused:  # control: no registry, no setting
        ConformalSettings(**{setting: name})
    assert refused.value.errors()[0]["type"] == "literal_error"
    assert f"`{name}`" not in reference()
    monkeypatch.setitem(registry, name, KINDS[setting])
    assert getattr(ConformalSettings(**{setting: name}), setting) == name
    line = next(row for row in reference().splitlines() if row.startswith(f"| `{setting}` |"))
    assert all(f"`{known}`" in line for known in registry)


@dataclass(frozen=True, slots=True)
class Life:
    """A run, its thresholds and what was said of it."""

    run: object
    thresholds: list
    trained: int
    manifest: dict
    audit: object


def live(grown, **conformal):
    """Train, evaluate a batch, let its classes become known, audit and verify."""
    with open_workspace(with_conformal(grown.workspace, alpha=0.2, **conformal)) as workspace:
        trained = run_training(workspace)
        grown.arrive(grown.later[0])
        seq = run_scoring(workspace).seq
        grown.reveal(grown.later[0].nodes)
        audit = run_audit(workspace)
        assert run_verification(workspace).problems == ()
        assert count_coverage(workspace.store, workspace.settings) == list(audit.rows)
        path = workspace.models / trained.version / "manifest.json"
        return Life(
            runs.one_run(workspace.store, "test", seq),
            rows_of(workspace, tables.threshold, seq=seq),
            trained.calibration,
            json.loads(path.read_text(encoding="utf-8")),
            audit,
        )


def test_a_kind_of_each_sort_goes_through_training_a_run_and_an_audit(grown, added):
    life = live(grown, adapt=False, **ADDED)
    run, notes = life.run, " | ".join(life.run.notes)
    assert {name: life.manifest["promise"][name] for name in ADDED} == ADDED
    assert {name: getattr(run, name) for name in ADDED} == ADDED

    # who calibrates: about half of the nodes that the training set aside
    assert 0.3 * life.trained < run.n_calibration < 0.7 * life.trained
    assert "nodes (half of known class)" in notes

    # who judges whom: two parts, inside each the rule's weights
    assert {row.band for row in life.thresholds} == {FEW, MANY}
    assert sum(row.n_calibration for row in life.thresholds) == run.n_calibration
    assert all(0 < row.effective_calibration < row.n_calibration for row in life.thresholds)
    assert run.effective_calibration < run.n_calibration
    assert "divided into halves" in notes
    assert "calibrated, inside each half: 2 parts hold due nodes" in notes

    # how it is counted and told
    totals = [row for row in life.audit.rows if row.slice == "total"]
    assert [row.known for row in totals] == [100]
    assert not any(row.exact for row in life.audit.rows)  # weights: no exact law
    assert not any(row.own_promise for row in life.audit.rows)
    assert promise_of_run(run).startswith("about: 80 % of each half are covered, as far as new ")


def test_without_them_the_same_project_is_calibrated_by_everybody(grown):
    """The control: what the throw-away kinds are seen by is not there without them."""
    life = live(grown, adapt=False, score="APS", rule="NodeEx", calibration_set="growing")
    assert [row.band for row in life.thresholds] == [""]
    assert life.run.n_calibration == life.trained == life.run.effective_calibration
    assert any(row.exact for row in life.audit.rows)
    assert "half" not in " | ".join(life.run.notes) + promise_of_run(life.run)
