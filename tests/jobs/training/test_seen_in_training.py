"""What counts are made of in training and in a run; the rule of older versions is the control.

The world is that of `benchmarks.seen_in_training`: accounts that pay each other, few of them known.
"""

import importlib
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.lifecycle.graph_benefit import PERMUTED
from ringfence.jobs.project.columns.column_encoders import counts_classified
from ringfence.jobs.project.model_files import SEEN_KEY, TREE_COUNTS_KEY
from ringfence.jobs.training.fitted_trees import tree_column_names
from ringfence.jobs.training.graph_check import change_inputs
from ringfence.jobs.training.repeat import fit_again, recorded_settings
from ringfence.jobs.training.several_labels import SeveralLabels, mirror_columns
from ringfence.models.trees.columns import tree_columns

world = importlib.import_module("benchmarks.seen_in_training")
TREES = ModelSettings(network="trees", degrees=True)


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    mirror = world.write_mirror(tmp_path_factory.mktemp("world") / "mirror", 1)
    split = world.split_early(mirror, 1)
    return mirror, split, np.concatenate([split.train, split.validation])


def inputs_of(early, settings, learnt):
    mirror, split, _ = early
    return SeveralLabels(mirror, world.MAPPING).fit_inputs(settings, split.train, learnt)


def columns_of_a_run(early, inputs):
    """Columns of the learnt nodes as a run had them when the latest of them had arrived."""
    mirror, _, learnt = early
    seen = mirror.created_ns <= mirror.created_ns[learnt].max()
    made = mirror_columns(mirror, world.MAPPING, inputs.schema, inputs.encoders, seen=seen)
    return tree_columns(replace(made, rule=inputs.rule), learnt)


def test_trees_are_grown_on_the_columns_that_a_run_computes(early):
    _, _, learnt = early
    inputs = inputs_of(early, TREES, learnt)
    trained = tree_columns(inputs.tree_inputs(learnt), learnt)
    np.testing.assert_array_equal(trained, columns_of_a_run(early, inputs))
    before = inputs_of(early, TREES, None)  # the control: the rule of older versions
    counted = tree_column_names(before).index("PAID Account: count")
    old = tree_columns(before.tree_inputs(learnt), learnt)
    assert old[:, counted].mean() < 0.5 * trained[:, counted].mean()


def test_nothing_is_seen_that_came_after_the_latest_node_to_learn_from(early):
    mirror, _, learnt = early
    latest = mirror.created_ns[learnt].max()
    for settings in (TREES, ModelSettings(network="typed_sage", degrees=True)):
        seen = inputs_of(early, settings, learnt).rows_seen(learnt)
        assert mirror.created_ns[seen].max() == latest
        assert seen.sum() == (mirror.created_ns <= latest).sum()
    alone = inputs_of(early, ModelSettings(network="typed_sage"), learnt)
    assert alone.rows_seen(learnt).sum() == len(learnt)  # it hears means and no counts


def test_a_network_that_hears_counts_is_trained_on_those_of_a_run(early):
    _, _, learnt = early
    hears = ModelSettings(network="typed_sage", degrees=True)
    data = inputs_of(early, hears, learnt).select(learnt)
    old = inputs_of(early, hears, None).select(learnt)
    assert len(old.features[0]) == len(learnt) < len(data.features[0])
    np.testing.assert_array_equal(data.features[0][: len(learnt)], old.features[0])

    def degree(of):
        return np.bincount(of.edges[0][1], minlength=len(learnt))[: len(learnt)].mean()

    assert degree(old) < 0.5 * degree(data)


def test_relationships_are_permuted_and_counted_among_all_that_is_seen(early):
    mirror, split, learnt = early
    seen, old = inputs_of(early, TREES, learnt), inputs_of(early, TREES, None)
    assert (
        old.relationships_among(learnt).shape[1] < 0.1 * seen.relationships_among(learnt).shape[1]
    )
    assert old.count_neighbours(learnt).mean() < 0.5 * seen.count_neighbours(learnt).mean()
    permuted = change_inputs(PERMUTED, seen, split, mirror.size)
    assert permuted.change.edges.shape[1] == seen.relationships_among(learnt).shape[1]


def test_accounts_are_counted_only_with_degrees(early):
    mirror, split, learnt = early
    for degrees in (True, False):
        inputs = inputs_of(early, ModelSettings(network="trees", degrees=degrees), learnt)
        assert ("PAID Account: count" in tree_column_names(inputs)) == degrees
        fitted = world.fit_seeing(
            mirror, split, "trees, degrees" if degrees else "trees", "arrived", 1
        )
        assert counts_classified(fitted.manifest_facts()) == degrees
    assert counts_classified({})  # versions before count them


@pytest.mark.parametrize("seen", world.SEEN)
def test_a_training_is_repeated_by_the_rule_that_it_had(early, seen):
    """Versions before have no key of either rule: they counted everything, on the learnt alone."""
    mirror, split, _ = early
    fitted = world.fit_seeing(mirror, split, "trees, degrees", seen, 1)
    facts = fitted.manifest_facts() | {"seed": 1, "recipe": asdict(fitted.trained.recipe)}
    if seen == "learnt":
        facts = {
            name: fact for name, fact in facts.items() if name not in (SEEN_KEY, TREE_COUNTS_KEY)
        }
    settings, _ = recorded_settings(ModelSettings(), facts)
    assert settings.degrees
    project = SimpleNamespace(settings=SimpleNamespace(model=settings), mapping=world.MAPPING)
    again = fit_again(project, mirror, split, None, facts, None)
    assert again.digest() == fitted.digest()
    other = "arrived" if seen == "learnt" else None  # the control: the other rule
    assert fit_again(project, mirror, split, None, facts | {SEEN_KEY: other}, None).digest() != (
        fitted.digest()
    )


def test_newcomers_are_told_apart_better_than_by_the_rule_of_older_versions(early, tmp_path):
    mirror, split, _ = early
    losses = {
        seen: world.judge_newest(
            mirror, split, world.fit_seeing(mirror, split, "trees", seen, 1), tmp_path / seen
        )[0]
        for seen in world.SEEN
    }
    assert losses["arrived"] < losses["learnt"] - 0.02
