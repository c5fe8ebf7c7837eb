"""Baselines: trees learn what columns tell, within their budget, and neighbours become columns."""

import numpy as np
import pytest

from ringfence.models.baselines import boosted_trees
from ringfence.models.baselines.boosted_trees import (
    choose_columns,
    largest_class,
    neighbour_columns,
    tree_chances,
)


def table(n, columns, seed=0):
    """Classes of three, of which the second column tells half."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    numbers = rng.standard_normal((n, columns)).astype(np.float32)
    numbers[:, 1] += 2 * truth
    return numbers, truth


@pytest.mark.slow
def test_trees_learn_what_the_columns_tell_and_the_largest_class_does_not():
    numbers, truth = table(600, 4)
    fitted = tree_chances(numbers[:400], truth[:400], numbers[400:], 3)
    assert fitted.notes == ()
    assert np.allclose(fitted.chances.sum(axis=1), 1)
    right = (fitted.chances.argmax(axis=1) == truth[400:]).mean()
    shares = largest_class(truth[:400], 3, 200)
    assert right > 0.6 > (shares.argmax(axis=1) == truth[400:]).mean()
    again = tree_chances(numbers[:400], truth[:400], numbers[400:], 3)
    assert np.array_equal(again.chances, fitted.chances)
    shuffled = np.random.default_rng(1).permutation(truth[:400])  # the control
    blind = tree_chances(numbers[:400], shuffled, numbers[400:], 3)
    assert (blind.chances.argmax(axis=1) == truth[400:]).mean() < 0.5


@pytest.mark.slow
def test_the_budget_leaves_rows_and_columns_out_and_says_so(monkeypatch):
    monkeypatch.setattr(boosted_trees, "MAX_COLUMNS", 3)
    monkeypatch.setattr(boosted_trees, "MAX_CELLS", 3 * 3 * 1_000)
    numbers, truth = table(1_500, 8)
    fitted = tree_chances(numbers[:1_400], truth[:1_400], numbers[1_400:], 3)
    assert fitted.notes == (
        "trees were fitted to the 3 of 8 columns that tell most",
        "trees were fitted to 1,000 of 1,400 nodes",
    )
    assert 1 in choose_columns(numbers, truth)[0]
    assert (fitted.chances.argmax(axis=1) == truth[1_400:]).mean() > 0.55


@pytest.mark.parametrize("classes", [[0] * 40, [0] * 39 + [2]])
def test_a_class_alone_or_of_one_node_is_no_reason_to_fail(classes):
    numbers = np.random.default_rng(0).standard_normal((40, 2)).astype(np.float32)
    fitted = tree_chances(numbers, np.array(classes), numbers[:5], 4)
    assert fitted.chances.shape == (5, 4)
    assert (fitted.chances.argmax(axis=1) == 0).all()
    nothing = tree_chances(numbers[:, :0], np.array(classes), numbers[:5, :0], 4)
    assert np.allclose(nothing.chances.sum(axis=1), 1)


def test_neighbours_are_counted_and_their_columns_averaged():
    place, neighbour = np.array([0, 0, 2]), np.array([0, 1, 1])
    means = np.array([[1.0, 10.0], [3.0, 30.0]], np.float32)
    found = neighbour_columns(place, neighbour, means, 3)
    assert found[0].tolist() == [2, 2, 20]
    assert found[2].tolist() == [1, 3, 30]
    assert found[1][0] == 0
    assert np.isnan(found[1][1:]).all()
    empty = neighbour_columns(place[:0], neighbour[:0], means[:0], 3)
    assert empty.shape == (3, 3)


def test_a_column_that_nobody_fitted_has_and_enormous_numbers_are_taken():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    table = np.stack([truth + rng.random(300), np.full(300, np.nan)], axis=1).astype(np.float32)
    table[0, 0], table[5, 0] = np.finfo(np.float32).min, np.nan
    fitted = tree_chances(table[:200], truth[:200], table[200:], 2)
    assert (fitted.chances.argmax(axis=1) == truth[200:]).mean() > 0.9


@pytest.mark.slow
def test_trees_are_fitted_with_one_thread_whatever_was_set_before(monkeypatch):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_info, threadpool_limits

    threads, fit = [], HistGradientBoostingClassifier.fit

    def counting_fit(self, *given):
        libraries = [row for row in threadpool_info() if row["user_api"] == "openmp"]
        threads.append({row["num_threads"] for row in libraries})
        return fit(self, *given)

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", counting_fit)
    numbers, truth = table(200, 4)
    with threadpool_limits(limits=2, user_api="openmp"):
        tree_chances(numbers, truth, numbers[:5], 3)
        after = {row["num_threads"] for row in threadpool_info() if row["user_api"] == "openmp"}
    assert threads == [{1}]
    assert after == {2}
