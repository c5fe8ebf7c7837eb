"""Promote and roll back on real stores: what the next run uses, and what is refused."""

import json
from dataclasses import replace
from threading import Thread

import pytest

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError, LeaseHeld, ModelError, StoreError
from ringfence.connector.store import predictions, tables
from ringfence.connector.store.models import active_manifest
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.promotion import run_promotion, run_rollback
from ringfence.jobs.lifecycle.versions import read_versions
from ringfence.jobs.project.model_files import WEIGHTS
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from tests.patience import PATIENCE_SECONDS
from tests.project_copies import Stage, starts_from
from tests.stores import sqlite

two_versions = starts_from(
    Stage("two versions", "trained", lambda workspace, _: run_training(workspace))
)
SILENT = object()  # takes a setting out of the configuration


def with_settings(workspace, section, **changes):
    part = getattr(workspace.settings, section)
    values = {**part.model_dump(exclude_unset=True), **changes}
    values = {name: value for name, value in values.items() if value is not SILENT}
    settings = workspace.settings.model_copy(update={section: type(part)(**values)})
    return replace(workspace, settings=settings, mapping=settings.mapping())


def active(workspace):
    return json.loads(active_manifest(workspace.store, workspace.project))["version"]


@sqlite
def test_a_life_of_two_versions(grown):
    """Train, score, train again, promote, score, roll back, score: one set per node throughout."""
    workspace = with_settings(grown.workspace, "conformal", rule=SILENT)
    first = run_training(workspace)
    assert first.state == "active"
    first_run = run_scoring(workspace)
    other = with_settings(workspace, "conformal", rule="NodeEx", score="APS")
    second = run_training(other)
    assert second.state == "candidate"
    grown.arrive(grown.later[0])
    second_run = run_scoring(workspace)
    assert second_run.run.model == first.version  # a candidate changes no run
    promoted = run_promotion(workspace, second.version[:20], "better on paper")
    assert (promoted.version, promoted.was, promoted.changed) == (
        second.version, first.version, True)  # fmt: skip
    assert any("rule: NodeEx" in difference for difference in promoted.differences)
    again = run_promotion(workspace, second.version, "twice")
    assert (again.changed, again.reason) == (False, "better on paper")
    grown.arrive(grown.later[1])
    third_run = run_scoring(workspace)
    assert (third_run.run.model, third_run.run.rule) == (second.version, "NodeEx")
    back = run_rollback(workspace, "it was not")
    assert (back.version, back.was) == (first.version, second.version)
    with pytest.raises(ModelError, match="no model version was in use before"):
        run_rollback(workspace, "once more")
    workspace.graph.run(
        "MATCH (old:Account) WITH old LIMIT 5 CREATE (:Account {id: 90000 + old.id, "
        "features: old.features, created_at: datetime.realtime()})"
    )
    last_run = run_scoring(workspace)
    assert (last_run.evaluated, last_run.run.model, last_run.run.rule) == (5, first.version, "auto")
    keys = predictions.evaluated_keys(workspace.store, workspace.project)
    evaluated = first_run.evaluated + second_run.evaluated + third_run.evaluated + 5
    assert len(keys) == len(set(keys)) == evaluated
    assert run_verification(workspace).problems == ()


@sqlite
@two_versions
def test_what_the_next_run_could_not_use_is_refused_and_nothing_changes(trained):
    workspace = trained.workspace
    first, second = read_versions(workspace.store, workspace.project).versions
    with pytest.raises(ModelError, match="0 model versions begin with 'x'"):
        run_promotion(workspace, "x", "why not")
    with pytest.raises(ConfigError, match="no reason"):
        run_promotion(workspace, second.version, "  ")
    delayed = with_settings(workspace, "conformal", evaluate="delay", delay_hours=1.0)
    with pytest.raises(ConfigError, match="the model was trained under"):
        run_promotion(delayed, second.version, "why not")
    renamed = with_settings(workspace, "graph", class_property="other")
    with pytest.raises(ConfigError, match="class_property"):
        run_promotion(renamed, second.version, "why not")
    weights = workspace.models / second.version / WEIGHTS
    kept = weights.read_bytes()
    weights.write_bytes(kept[:-1] + b"\0")
    with pytest.raises(ModelError, match="its hash differs"):
        run_promotion(workspace, second.version, "why not")
    weights.write_bytes(kept)
    member = tables.member
    with workspace.store.transaction() as connection:
        connection.execute(member.delete().where(member.c.version == second.version))
    with pytest.raises(StoreError, match="members"):
        run_promotion(workspace, second.version, "why not")
    assert active(workspace) == first.version


@pytest.mark.long
@sqlite
def test_a_version_of_other_classes_is_taken_into_use_and_says_so(grown):
    workspace = with_settings(grown.workspace, "model", max_epochs=3)
    first = run_training(workspace)
    workspace.graph.run(
        "MATCH (a:Account) WHERE a.kind IS NOT NULL WITH a ORDER BY a.id LIMIT 40 "
        "SET a.kind = 'crypto'"
    )
    second = run_training(workspace)
    assert set(second.classes) == {*first.classes, "crypto"}
    promoted = run_promotion(workspace, second.version, "a new kind of account")
    assert "classes: crypto came" in promoted.differences
    grown.arrive(grown.later[0])
    done = run_scoring(workspace)
    assert (done.run.model, done.evaluated > 0) == (second.version, True)
    back = run_rollback(workspace, "not yet")
    assert "classes: crypto went" in back.differences
    grown.reveal(grown.later[0].nodes)
    run_audit(workspace)
    grown.arrive(grown.later[1])
    assert run_scoring(workspace).run.model == first.version
    assert run_verification(workspace).problems == ()


@sqlite
def test_a_silent_configuration_takes_the_policy_of_the_version_in_use(grown):
    workspace = grown.workspace
    delayed = with_settings(workspace, "conformal", evaluate="delay", delay_hours=1000.0)
    run_training(delayed)
    silent = run_scoring(workspace)
    assert (silent.evaluated, silent.waiting > 0) == (0, True)
    at_once = with_settings(workspace, "conformal", evaluate="arrival")
    run_training(at_once, promote="we can't wait")
    assert run_scoring(workspace).evaluated > 0
    run_rollback(workspace, "we can")
    grown.arrive(grown.later[0])
    assert run_scoring(workspace).evaluated == 0


@sqlite
@two_versions
@pytest.mark.parametrize("place", fault_points.PROMOTION_NAMES)
def test_a_crash_leaves_the_version_before_or_the_one_after(trained, monkeypatch, place):
    workspace = trained.workspace
    first, second = read_versions(workspace.store, workspace.project).versions

    def die(name):
        if name == place:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reach", die)
        with pytest.raises(KeyboardInterrupt):
            run_promotion(workspace, second.version, "better")
    expected = second if place == "promoted" else first
    assert active(workspace) == expected.version
    assert run_scoring(workspace).run.model == expected.version
    assert run_promotion(workspace, second.version, "again").changed == (place != "promoted")
    assert run_verification(workspace).problems == ()


@sqlite
@two_versions
def test_a_promotion_waits_for_a_run_that_is_at_work(trained):
    workspace = trained.workspace
    _, second = read_versions(workspace.store, workspace.project).versions
    done = []
    with workspace.lease():
        with pytest.raises(LeaseHeld):
            run_promotion(workspace, second.version, "at once", wait_seconds=0)
        waiting = Thread(
            target=lambda: done.append(run_promotion(workspace, second.version, "in turn"))
        )
        waiting.start()
        waiting.join(0.7)
        assert not done
    waiting.join(PATIENCE_SECONDS)
    assert done[0].changed
    assert active(workspace) == second.version
