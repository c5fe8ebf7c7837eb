"""Versions on the holdout: what is compared, what it says, and that trained nodes never count."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text

from ringfence.connector.errors import ModelError, StoreError
from ringfence.connector.store.lifecycle.comparisons import comparisons_of
from ringfence.connector.store.models import manifest_of, members
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.comparison import BASELINES, compare_by, describe, newest_of
from ringfence.jobs.lifecycle.versions import read_versions, stored_report
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.samples.accounts import load as load_batch
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.checks.store import check_model
from ringfence.jobs.training import comparison
from ringfence.jobs.training.comparison import run_comparison
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.status import read_status
from tests.jobs.lifecycle.test_promotion import with_settings
from tests.stores import sqlite


@pytest.fixture
def labelled(workspace, sample):
    """500 accounts, nine of ten of known kind: enough for a holdout."""
    (everyone,) = batches(sample, [sample.nodes])
    known = np.random.default_rng(0).random(sample.nodes) < 0.9
    load_batch(workspace.graph, sample, everyone, known, lambda *_: None)
    return workspace


@sqlite
def test_no_versions_are_compared_from_rows_that_are_not_as_they_were_sealed(labelled):
    workspace = labelled
    trained = run_training(workspace)
    kept = len(comparisons_of(workspace.store, workspace.project))
    for column, words in (("watermark_ns", "watermark_ns is 7"), ("next_seq", "next_seq is 8")):
        with workspace.store.transaction() as connection:
            before = connection.execute(text(f"SELECT {column} FROM lease")).scalar_one()
            value = 7 if column == "watermark_ns" else 8
            connection.execute(text(f"UPDATE lease SET {column} = :value"), {"value": value})
        with pytest.raises(StoreError, match=words):
            run_comparison(workspace, trained.version)
        with workspace.store.transaction() as connection:
            connection.execute(text(f"UPDATE lease SET {column} = :value"), {"value": before})
    assert len(comparisons_of(workspace.store, workspace.project)) == kept
    run_comparison(workspace, trained.version)  # the control
    assert len(comparisons_of(workspace.store, workspace.project)) == kept + 1


def keys_of(workspace, version, *roles):
    known = members(workspace.store, workspace.project, version)
    return {one.node_key for one in known if one.role in roles}


@sqlite
def test_a_candidate_is_compared_with_the_active_version_and_with_the_baselines(labelled):
    workspace = labelled
    first = run_training(workspace)
    alone = first.comparison
    assert (alone.against, alone.nodes) == (None, first.holdout)
    assert set(alone.result["ways"]) == {first.version, *BASELINES}
    lazy = with_settings(workspace, "model", max_epochs=1, learning_rate=1e-9, network="MLP")
    second = run_training(lazy)
    found = second.comparison
    assert (found.version, found.against) == (second.version, first.version)
    assert set(found.result["ways"]) == {second.version, first.version, *BASELINES}
    own = found.result["ways"][second.version]["metrics"]
    assert set(own) == {"accuracy", "macro_f1", "log_loss", "set_size", "singleton_hits"}
    assert 1 <= own["set_size"][0] <= len(found.result["class_nodes"])
    assert sum(found.result["class_nodes"].values()) == found.nodes >= 30
    assert any(f"{second.version} is worse than {first.version}" in one for one in found.sentences)
    said = [one for one in found.sentences if "largest class" in one]
    assert any(f"{second.version} is" in one for one in said), found.sentences
    holdout = keys_of(workspace, first.version, "holdout")
    assert holdout == keys_of(workspace, second.version, "holdout")
    others = keys_of(workspace, second.version, "train", "validation", "calibration")
    assert not holdout & others
    said = read_versions(workspace.store, workspace.project)
    assert any("the newest candidate" in one for one in said.warnings)
    assert said.versions[0].on_holdout.startswith("accuracy 0.")
    status = read_status(workspace.store, workspace.project)
    assert status.not_beaten == said.warnings
    doctor = [one.text for one in check_model(workspace.store, workspace.settings)]
    assert set(said.warnings) <= set(doctor)
    card = read_card(workspace.store, workspace.project, second.version)
    assert card.as_json()["comparison"]["nodes"] == found.nodes
    assert any("trees, own + one hop" in row[0] for s in card.sections for row in s.rows)
    again = run_comparison(workspace, first.version)
    assert (again.version, again.against) == (first.version, None)
    assert again.result["ways"][first.version] == alone.result["ways"][first.version]
    stored = stored_report(workspace.store, workspace.project, second.version[:20], first.version)
    assert stored.as_json() == json.loads(json.dumps(found.as_json()))
    with pytest.raises(ModelError, match="both sides"):
        run_comparison(workspace, first.version, first.version)
    run_scoring(workspace)
    assert run_verification(workspace).problems == ()


@sqlite
def test_trained_nodes_flatter_and_are_never_compared(labelled, monkeypatch):
    """A version that claims a holdout of all nodes is compared on those that it left alone."""
    workspace = with_settings(
        labelled, "model", network="MLP", hidden=256, dropout=0.0, weight_decay=0.0,
        max_epochs=300, patience=300, train=0.2, validation=0.1, calibration=0.7,
    )  # fmt: skip
    trained = run_training(workspace)
    mirror = load_graph(workspace)
    model = comparison.load_version(workspace, trained.version)
    greedy = replace(model, manifest={**model.manifest, "holdout": {"key": "x", "share": 1.0}})
    honest = comparison.find_nodes(workspace, mirror, [greedy])
    learnt = keys_of(workspace, trained.version, "train", "validation", "calibration")
    assert not learnt & set(honest.keys)
    assert set(honest.keys) == keys_of(workspace, trained.version, "holdout")
    right = _accuracy(workspace, model, mirror, honest)
    with monkeypatch.context() as patched:  # the control: without the check they would flatter
        patched.setattr(comparison, "_used_keys", lambda *_: set())
        leaked = comparison.find_nodes(workspace, mirror, [greedy])
    train = keys_of(workspace, trained.version, "train")
    assert train <= set(leaked.keys)
    inside = np.array([key in train for key in leaked.keys])
    flattering = replace(
        leaked, rows=leaked.rows[inside], truth=leaked.truth[inside],
        keys=[key for key in leaked.keys if key in train],
    )  # fmt: skip
    assert _accuracy(workspace, model, mirror, flattering) > right + 0.1


def _accuracy(workspace, model, mirror, nodes):
    outcome = comparison.version_outcome(workspace, model, mirror, nodes)
    return (outcome.chances.argmax(axis=1) == nodes.truth).mean()


@sqlite
def test_a_version_without_holdout_or_with_other_columns_is_allowed_and_said(labelled):
    workspace = labelled
    old = run_training(with_settings(workspace, "model", holdout=0.0))
    assert (old.holdout, old.comparison) == (0, None)
    assert "holdout = 0" in old.not_compared
    with pytest.raises(ModelError, match="neither learnt from nor"):
        run_comparison(workspace, old.version)
    new = run_training(workspace)  # the old one has learnt from all of the holdout
    assert new.comparison.against is None
    assert new.comparison.sentences[-1].startswith(f"not compared with {old.version}: 0 nodes")
    workspace.graph.run("MATCH (a:Account) SET a.first = a.features[0], a.second = a.features[1]")
    other = with_settings(workspace, "graph", features=["first", "second"])
    third = run_training(other)
    (note,) = [one for one in third.comparison.sentences if one.startswith("not compared with")]
    assert "[graph] features" in note
    assert run_verification(workspace).problems == ()
    newest = newest_of(comparisons_of(workspace.store, workspace.project), third.version)
    assert describe(newest) == list(third.comparison.sentences)
    manifest = json.loads(manifest_of(workspace.store, workspace.project, old.version))
    assert manifest["holdout"] is None
    assert compare_by(other.settings) == "accuracy"
    assert compare_by(with_settings(other, "conformal", promise="class").settings) == "macro_f1"
