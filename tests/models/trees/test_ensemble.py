"""Trees as arrays give scikit-learn's numbers, bit by bit."""

import numpy as np
import pytest
from safetensors.numpy import load, save
from sklearn.ensemble import HistGradientBoostingClassifier

from ringfence.models.scores import softmax64
from ringfence.models.training import boosted_trees
from ringfence.models.training.boosted_trees import TreeTable, grow_trees
from ringfence.models.training.loop import Recipe
from ringfence.models.trees.ensemble import TreeEnsemble

RECIPE = Recipe(3, 0.1, 0.0, 60, 10, None)


def table(classes, rows=900, seed=0, columns=6):
    """Columns with missing values and ties, whose sum decides the class but for noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    x[:, 1] = np.round(x[:, 1])
    hidden = x.sum(axis=1) + rng.normal(size=rows)
    y = np.digitize(hidden, np.quantile(hidden, np.arange(1, classes) / classes)).astype(np.int64)
    x[rng.random(x.shape) < 0.1] = np.nan
    cut = rows * 2 // 3
    return TreeTable(x[:cut], y[:cut], x[cut:], y[cut:], classes)


def grown_with_model(monkeypatch, given, recipe=RECIPE):
    """The trees, and the scikit-learn model that they were taken from."""
    models = []
    whole = boosted_trees._fit

    def keep(*arguments):
        models.append(whole(*arguments))
        return models[-1]

    monkeypatch.setattr(boosted_trees, "_fit", keep)
    trees, trained = grow_trees(given, recipe)
    return trees, trained, models[0]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_sums_have_the_bits_of_scikit_learn(monkeypatch, classes):
    given = table(classes)
    trees, trained, model = grown_with_model(monkeypatch, given)
    staged = list(model._staged_raw_predict(given.validation))
    assert trained.epochs == len(staged)
    raw = staged[trained.best_epoch]
    np.testing.assert_array_equal(trees.add_up(given.validation), raw)
    assert trees.rounds == trained.best_epoch + 1 < trained.epochs  # later rounds are cut off


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_those_of_scikit_learn_but_for_float32(monkeypatch, classes):
    """Outputs of all scorers are float32: 6e-8 of a logit is what may be lost."""
    given = table(classes)
    trees, trained, model = grown_with_model(monkeypatch, given)
    expected = list(model.staged_predict_proba(given.validation))[trained.best_epoch]
    probabilities = softmax64(trees.logits(given.validation, classes))
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=2e-7)


def test_a_wrong_direction_of_missing_values_is_seen(monkeypatch):
    """The control: were NaN sent the other way, the sums would differ."""
    given = table(3)
    trees, trained, model = grown_with_model(monkeypatch, given)
    arrays = trees.arrays()
    turned = TreeEnsemble.from_arrays(arrays | {"trees.missing_left": ~trees.missing_left})
    raw = list(model._staged_raw_predict(given.validation))[trained.best_epoch]
    assert not np.array_equal(turned.add_up(given.validation), raw)


def test_a_file_gives_the_same_trees():
    given = table(3)
    trees, _ = grow_trees(given, RECIPE)
    read = TreeEnsemble.from_arrays(load(save(trees.arrays())))
    expected = trees.logits(given.validation, 3)
    np.testing.assert_array_equal(read.logits(given.validation, 3), expected)


def test_same_seed_same_bits():
    first, _ = grow_trees(table(3), RECIPE)
    second, _ = grow_trees(table(3), RECIPE)
    other, _ = grow_trees(table(3, seed=1), RECIPE)
    digests = [
        {name: array.tobytes() for name, array in t.arrays().items()}
        for t in (first, second, other)
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_class_without_train_nodes_is_less_likely_than_any_other():
    given = table(3)
    known = given.train_y != 1
    without = TreeTable(
        given.train[known], given.train_y[known], given.validation, given.validation_y, 3
    )
    trees, _ = grow_trees(without, RECIPE)
    probabilities = softmax64(trees.logits(given.validation, 3))
    assert (probabilities[:, 1] < 1 / known.sum()).all()
    assert (probabilities[:, 1] > 0).all()


def test_a_column_that_no_train_node_has_decides_nothing():
    given = table(2)
    train, validation = given.train.copy(), given.validation.copy()
    train[:, 2] = np.nan
    trees, _ = grow_trees(
        TreeTable(train, given.train_y, validation, given.validation_y, 2), RECIPE
    )
    assert 2 not in trees.column
    expected = trees.logits(validation, 2)
    validation[:, 2] = np.nan
    np.testing.assert_array_equal(trees.logits(validation, 2), expected)


@pytest.mark.parametrize(
    ("train_y", "validation_y", "said"),
    [([0, 0, 0], [0, 1], "one class"), ([0, 1, 0], [2, 2], "no validation node")],
)
def test_trees_that_cannot_be_grown_are_refused(train_y, validation_y, said):
    x = np.zeros((3, 1), np.float32)
    given = TreeTable(x, np.array(train_y), x[:2], np.array(validation_y), 3)
    with pytest.raises(ValueError, match=said):
        grow_trees(given, RECIPE)


def test_class_weights_raise_the_rare_class(monkeypatch):
    given = table(2)
    rare = np.flatnonzero((given.train_y == 0) | (np.arange(len(given.train_y)) % 8 == 0))
    few = TreeTable(given.train[rare], given.train_y[rare], given.validation, given.validation_y, 2)
    weights = tuple(len(rare) / (2 * np.bincount(few.train_y)))
    plain, _ = grow_trees(few, RECIPE)
    weighed, _, model = grown_with_model(monkeypatch, few, Recipe(3, 0.1, 0.0, 60, 10, weights))
    assert isinstance(model, HistGradientBoostingClassifier)
    chances = [softmax64(t.logits(given.validation, 2))[:, 1].mean() for t in (plain, weighed)]
    assert chances[1] > chances[0] + 0.1
