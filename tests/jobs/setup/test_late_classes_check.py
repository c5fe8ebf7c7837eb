"""Doctor knows how late classes come, by the project's own record, and says what it means."""

import json
from dataclasses import replace

import pytest

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.migrate import migrate_sql
from ringfence.connector.store.models import active_manifest
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load_values
from ringfence.jobs.project.promise import FIRST_TERMS
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.scoring.calibration.calibration_set import read_settled
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.checks import late_classes
from ringfence.jobs.setup.checks.late_classes import check_late_classes
from ringfence.jobs.views.promise import late_classes_of_run
from ringfence.jobs.views.status import read_status
from tests.stores import sqlite

GRAPH = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}


def findings(workspace, **conformal):
    part = workspace.settings.conformal.model_copy(update=conformal)
    settings = workspace.settings.model_copy(update={"conformal": part})
    return [finding.text for finding in check_late_classes(workspace.store, settings)]


def go_on(grown):
    """The classes of the first run become known, and a second run is made."""
    grown.reveal(grown.first.nodes)
    run_audit(grown.workspace)
    grown.arrive(grown.later[0])
    run_scoring(grown.workspace)


@sqlite
def test_doctor_and_status_say_how_late_classes_come_and_what_is_answered(scored):
    (before,) = findings(scored.workspace)
    assert "no class of an evaluated node is known yet" in before
    assert "rests on the calibration nodes of the training" in before
    go_on(scored)
    (told,) = findings(scored.workspace)
    words = "classes usually come 1 run late; the level answers runs up to run 1"
    assert told == f"run 2: {words}"
    last = read_status(scored.workspace.store, "test").runs[-1]
    assert late_classes_of_run(last) == [words]


@sqlite
@pytest.mark.parametrize("conformal", [{}, {"calibration_set": "frozen", "adapt": False}])
def test_doctor_warns_of_a_class_that_was_never_seen_since_the_training(scored, conformal):
    go_on(scored)
    part = scored.workspace.settings.conformal.model_copy(update=conformal)
    settings = scored.workspace.settings.model_copy(update={"conformal": part})
    store = scored.workspace.store
    assert not [f for f in check_late_classes(store, settings) if f.level == "warning"]
    manifest = json.loads(active_manifest(store, settings.project))
    (warning,) = late_classes._check_unseen(
        read_settled(store, settings, with_class(manifest, "gone"))
    )
    assert warning.level == "warning"
    assert "never seen since the training: gone (" in warning.text
    assert "label_delay_days" in warning.fix


def declared(store, settings, days, delay):
    part = settings.graph.model_copy(update={"label_delay_days": days})
    settings = settings.model_copy(update={"graph": part})
    settled = read_settled(store, settings, {})
    settled = replace(settled, runs=replace(settled.runs, delay=delay))
    return list(late_classes._check_declared(store, settings, settled))


def test_a_declared_delay_is_compared_with_what_is_on_record(tmp_path):
    settings = load_values(
        {"project": "p", "graph": GRAPH, "audit": {}}, tmp_path / "ringfence.toml", {}
    )
    store = open_store(settings.audit.url)
    migrate_sql(store)
    fill_store(store, settings, Plan(runs=40, per_run=20, days_apart=1.0, known_runs=30, known=1.0))
    (long,) = declared(store, settings, 400.0, None)
    assert long.level == "ok"
    assert "label_delay_days is 400, and the runs of the project are 39 days old" in long.text
    assert declared(store, settings, 14.0, 20) == []  # the control: it fits
    assert declared(store, settings, None, 20) == []
    (short,) = declared(store, settings, 14.0, 30)
    assert short.level == "warning"
    assert short.fix == "set [graph] label_delay_days = 30"
    store.close()


def with_class(manifest, name):
    """The manifest of a training that knew a class more, which no evaluated node has."""
    counts = manifest["data"]["classes"]
    counts = counts | {name: sum(counts.values()) // 4}
    data = manifest["data"] | {"classes": counts}
    return manifest | {"data": data, "classes": [*manifest["classes"], name]}


@sqlite
def test_a_frozen_calibration_is_told_the_delay_too(scored):
    frozen = {"calibration_set": "frozen", "adapt": False}
    (before,) = findings(scored.workspace, **frozen)
    assert before.startswith("no class of an evaluated node is known yet")
    go_on(scored)
    (told,) = findings(scored.workspace, **frozen)
    assert told.startswith("classes usually come 1 run late; calibration is frozen")


@sqlite
def test_a_run_with_frozen_calibration_says_it_in_its_notes_and_status(scored):
    frozen = {"calibration_set": "frozen", "adapt": False}
    scored.reveal(scored.first.nodes)
    run_audit(scored.workspace)
    scored.arrive(scored.later[0])
    settings = scored.workspace.settings
    part = settings.conformal.model_copy(update=frozen)
    settings = settings.model_copy(update={"conformal": part})
    run_scoring(replace(scored.workspace, settings=settings))
    last = read_status(scored.workspace.store, "test").runs[-1]
    (words,) = late_classes_of_run(last)
    assert words.startswith("classes usually come 1 run late; calibration is frozen")
    assert words in last.notes
    assert not any("the level answers" in note for note in last.notes)


@pytest.mark.parametrize(("rule", "delay", "warned"), [("then", 45, 1), ("then", 7, 0),
                                                       ("today", 45, 0)])  # fmt: skip
def test_a_level_that_the_measured_delay_makes_swing_is_warned_of(rule, delay, warned):
    terms = replace(FIRST_TERMS, adapt=True, adapt_rule=rule)
    said = list(late_classes._check_swing(terms, delay))
    assert len(said) == warned
    assert all(f"classes come {delay} runs late" in finding.text for finding in said)
