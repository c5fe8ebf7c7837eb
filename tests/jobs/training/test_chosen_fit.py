"""What is left open is chosen on validation nodes, kept in the manifest, and can be repeated."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ringfence.connector.keys import decode_key
from ringfence.connector.store.models import find_active_manifest, members
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.chosen_fit import FACTORS, _is_imbalanced, _plans
from ringfence.jobs.training.repeat import recorded_settings, run_repeat
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.train import run_training
from tests.stores import sqlite


def with_model(workspace, **values):
    settings = workspace.settings
    model = settings.model.model_copy(update=values)
    return replace(workspace, settings=settings.model_copy(update={"model": model}))


def split_of(counts):
    indices = np.repeat(np.arange(len(counts)), counts)
    rows = np.arange(len(indices))
    return Split(tuple("abc"[: len(counts)]), indices, rows, rows[:1], rows[:1])


def test_class_weights_are_tried_where_classes_are_uneven_and_nothing_says_otherwise(tmp_path):
    from tests.jobs.training.test_class_promise import settings

    def plans(counts, weighed=False, **model):
        return list(_plans(settings(tmp_path, None, model).model, split_of(counts), weighed))

    same = FACTORS[0]
    assert plans([50, 5]) == [(same, False), (same, True)]
    assert plans([50, 6]) == [(same, False)]  # not uneven enough
    assert plans([50, 5], class_weights=False) == [(same, False)]
    assert plans([50, 5], True, class_weights=True) == [(same, True)]
    assert plans([50, 5], True) == [(same, True)]  # a promise per class asked for them
    assert plans([9, 9], search=3) == [(one, False) for one in FACTORS[:3]]
    assert _is_imbalanced(split_of([10, 0]))


@pytest.mark.slow
@sqlite
def test_a_search_is_kept_and_a_training_can_be_repeated_bit_by_bit(grown):
    workspace = with_model(grown.workspace, search=3, class_weights=False, max_epochs=8)
    said = []
    done = run_training(workspace, lambda what, at, _all: said.append((what, at)))
    assert ("trials on validation nodes", 2) in said
    manifest = json.loads(find_active_manifest(workspace.store, workspace.project))
    trials = manifest["training"]["trials"]
    assert [round(one["hidden"] / 64, 1) for one in trials] == [1.0, 1.0, 1.0]
    assert len({one["learning_rate"] for one in trials}) == 3
    best = min(trials, key=lambda one: one["validation_log_loss"])
    assert manifest["recipe"]["learning_rate"] == best["learning_rate"]
    assert "3 trials on validation nodes" in " ".join(done.promise)

    plain = grown.workspace  # another configuration than the version was trained with
    files = sorted((file, file.stat().st_mtime_ns) for file in plain.folder.rglob("*"))
    again = run_repeat(plain, done.version[:10])
    assert (again.equal, again.largest_difference, again.differences) == (True, 0.0, ())
    assert sorted((f, f.stat().st_mtime_ns) for f in plain.folder.rglob("*")) == files

    # a column of a training node is another one now: the weights are not those any more
    key = min(one.node_key for one in members(plain.store, plain.project, done.version, "train"))
    plain.graph.run(
        "MATCH (n:Account {id: $id}) SET n.features = [x IN n.features | x + 1.0]",
        id=decode_key(key),
    )
    run_scoring(plain)
    run_reconcile(plain, repair=True)
    changed = run_repeat(plain, done.version)
    assert not changed.equal
    assert changed.largest_difference > 0


def test_settings_of_an_older_manifest_come_from_what_it_has(tmp_path):
    from tests.jobs.training.test_class_promise import settings

    recipe = {"learning_rate": 0.02, "weight_decay": 0.0, "max_epochs": 7, "patience": 3,
              "class_weights": [1.0, 2.0]}  # fmt: skip
    manifest = {"network": "SAGE", "options": {"hidden": 12}, "seed": 5, "recipe": recipe}
    found, said = recorded_settings(settings(tmp_path).model, manifest)
    assert (found.network, found.hidden, found.seed, found.learning_rate) == ("SAGE", 12, 5, 0.02)
    assert found.class_weights is True
    assert said
    kept = {"configured": settings(tmp_path, None, {"batch_size": 32}).model.model_dump(), "n": 1}
    found, said = recorded_settings(settings(tmp_path).model, manifest | {"training": kept})
    assert (found.batch_size, said) == (32, [])
