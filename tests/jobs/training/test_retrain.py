"""Scheduled trainings: what makes one due, that runs go on beside it, and the rule of promotion."""

import json
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import tables
from ringfence.connector.store.lifecycle.activations import activations_of
from ringfence.connector.store.models import manifest_of
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.config.load import load_values
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.retrain_need import BEGAN_KEY, WHY_KEY, retraining_need
from ringfence.jobs.schedule.job_functions import retrain
from ringfence.jobs.schedule.runner import Stopped
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training import retrain as retraining
from ringfence.jobs.training.retrain import run_retraining
from ringfence.jobs.training.train import run_training
from tests.jobs.integrity.sample_record import project
from tests.jobs.lifecycle.test_promotion import active, with_settings
from tests.jobs.training.test_comparison import labelled
from tests.stores import sqlite

__all__ = ["labelled"]  # a fixture


def nothing(*_):
    pass


@pytest.fixture(scope="module")
def record(request, tmp_path_factory):
    with project(request, tmp_path_factory.mktemp("retraining"), "sqlite") as opened:
        yield opened


def need(record, **values):
    store, settings = record
    part = settings.retrain.model_copy(update=values)
    return retraining_need(store, settings.model_copy(update={"retrain": part}))


def test_what_makes_a_training_due(record):
    store, _ = record
    assert need(record).words == "its time came"
    asked = {"when": ["alarm", "classes"], "alarms": ["coverage"], "new_classes": 10**6}
    assert not need(record, **asked).due  # the alarm fired before the newest version was trained
    assert "of 1,000,000 classes became known" in need(record, **asked).words
    with store.transaction() as connection:
        since = 4 * 10**18  # an alarm that began while a version trained is after its beginning
        firing = tables.alarm.c.rule == "coverage"
        connection.execute(update(tables.alarm).where(firing).values(since_ns=since))
    found = need(record, **asked)
    assert found.due
    assert found.words.startswith("the alarm coverage fires since")
    assert not need(record, **{**asked, "alarms": ["drift"]}).due
    with store.transaction() as connection:
        connection.execute(update(tables.prediction).values(labelled_ns=since))
    assert need(record, **{**asked, "alarms": ["drift"], "new_classes": 5}).due


@pytest.mark.parametrize(("began", "due"), [(100, True), (250, False)])
def test_an_alarm_that_fires_while_a_version_trains_makes_the_next_training_due(
    record, monkeypatch, began, due
):
    """It trains from 100, or from 250, to 300; the alarm fires since 200."""
    newest = SimpleNamespace(manifest={BEGAN_KEY: began}, trained_ns=300)
    alarm = SimpleNamespace(rule="drift", state="firing", since_ns=200)
    monkeypatch.setattr(ProjectQueries, "models", lambda _self: [newest])
    monkeypatch.setattr(ProjectQueries, "alarms", lambda _self: [alarm])
    assert need(record, when=["alarm"]).due == due


def test_a_rule_that_does_not_exist_is_refused(tmp_path):
    graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
    for wrong in ({"when": []}, {"when": ["never"]}, {"promote": "always"}, {"worst_class": -1}):
        with pytest.raises(ConfigError):
            load_values({"graph": graph, "retrain": wrong}, tmp_path / "ringfence.toml", {})


@sqlite
def test_runs_go_on_beside_a_training_and_the_better_version_is_promoted(labelled, monkeypatch):
    workspace = with_settings(labelled, "retrain", promote="if better", worst_class=1.0)
    lazy = with_settings(workspace, "model", max_epochs=1, network="MLP")
    first = run_training(lazy)
    scored = []
    honest = retraining.train_on

    def while_training(*arguments):
        scored.append(run_scoring(workspace))  # it holds no lease
        return honest(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(retraining, "train_on", while_training)
        done = run_retraining(workspace, "the alarm drift fires")
    assert scored[0].evaluated > 0
    assert scored[0].run.model == first.version
    assert done.promoted
    assert active(workspace) == done.trained.version
    newest = activations_of(workspace.store, workspace.project)[-1]
    assert newest.reason.startswith("retrained because the alarm drift fires; better in accuracy")
    manifest = json.loads(manifest_of(workspace.store, workspace.project, done.trained.version))
    assert manifest[WHY_KEY] == "the alarm drift fires"
    assert manifest[BEGAN_KEY] > 0
    assert not (workspace.folder / retraining.FOLDER).exists()
    worse = run_retraining(with_settings(lazy, "retrain", promote="if better"), "its time came")
    assert not worse.promoted
    assert "a candidate: worse in accuracy" in worse.words
    assert active(workspace) == done.trained.version
    run_scoring(workspace)
    assert run_verification(workspace).problems == ()


@pytest.mark.long
@sqlite
def test_the_job_trains_in_a_process_of_its_own_and_ends_with_the_scheduler(labelled):
    workspace = with_settings(labelled, "model", max_epochs=2)
    ended = retrain(workspace, nothing)
    assert ended.outcome == "done"
    assert "no model yet" in ended.words
    run_training(workspace)

    def stop(*_):
        raise Stopped

    with pytest.raises(Stopped):
        retrain(workspace, stop)
    ended = retrain(workspace, nothing)
    assert ended.outcome == "done", ended.words
    assert "because its time came; a candidate until someone promotes it" in ended.words
    broken = with_settings(workspace, "model", network="nobody.here:Net")
    ended = retrain(broken, nothing)
    assert ended.outcome == "failed"
    assert "[model] network" in ended.words
    assert run_verification(workspace).problems == ()
