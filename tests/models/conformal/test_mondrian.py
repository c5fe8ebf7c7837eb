"""Per-class calibration: each class keeps its own promise."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from ringfence.models.conformal.mondrian import (
    class_p_values,
    class_prediction_sets,
    class_thresholds,
)
from ringfence.models.conformal.sets import p_values, prediction_sets, threshold


def sample(n, rng):
    """A rare class 1 whose scores are low."""
    classes = (rng.random(n) < 0.1).astype(int)
    return rng.random(n) - classes, classes


def test_thresholds_and_p_values_give_the_same_sets_per_class():
    rng = np.random.default_rng(0)
    scores, classes = sample(300, rng)
    weights, judged = rng.random(300), rng.normal(size=(50, 3))
    for mass in (None, weights):
        for alpha in (0.05, 0.1, 0.3):
            limits = class_thresholds(scores, classes, 3, alpha, mass)
            sets = class_prediction_sets(judged, limits)
            assert np.array_equal(sets, class_p_values(scores, classes, judged, mass) > alpha)
    assert limits[2] == -np.inf
    assert (class_p_values(scores, classes, judged)[:, 2] == 1.0).all()


def test_each_class_is_judged_by_its_own_nodes():
    rng = np.random.default_rng(1)
    scores, classes = sample(200, rng)
    judged, tests = rng.normal(size=(20, 2)), rng.random(20) + 0.1
    found = class_p_values(scores, classes, judged, test_weight=tests)
    for y in range(2):
        alone = p_values(scores[classes == y], judged[:, y], test_weight=tests)
        assert np.array_equal(found[:, y], alone)


def test_a_rare_class_keeps_its_promise_where_one_threshold_for_all_fails_it():
    rng = np.random.default_rng(2)
    alpha, missed, missed_by_one = 0.2, [], []
    for _ in range(400):
        scores, classes = sample(200, rng)
        judged = rng.random((20, 1)) - 1.0  # twenty nodes of the rare class, its own score
        limits = class_thresholds(scores, classes, 2, alpha)
        missed.append(1.0 - prediction_sets(judged, limits[1]).mean())
        missed_by_one.append(1.0 - prediction_sets(judged, threshold(scores, alpha)).mean())
    assert np.mean(missed) < alpha + 0.01
    assert np.mean(missed_by_one) > 2 * alpha


def test_over_all_orders_each_class_is_covered_exactly_as_its_own_rank_says():
    classes = np.array([0, 1, 0, 1, 1, 0])
    alpha = 0.3
    for y, own in ((0, [0, 2, 5]), (1, [1, 3, 4])):
        covered = 0
        for order in permutations(range(3)):
            scores = np.arange(6.0)
            scores[own] = np.array(order, float)
            known = np.delete(np.arange(6), own[-1])
            limits = class_thresholds(scores[known], classes[known], 2, alpha)
            covered += bool(scores[own[-1]] >= limits[y])
        assert Fraction(covered, 6) >= Fraction(
            7, 10
        )  # two nodes of its own: rank 0, always covered


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: class_thresholds([0.1], [2], 2, 0.1), "0 to 1"),
        (lambda: class_thresholds([0.1], [0.5], 2, 0.1), "whole numbers"),
        (lambda: class_prediction_sets([[0.1, 0.2]], [0.1]), "per class"),
        (lambda: class_prediction_sets([[0.1, 0.2]], [0.1, float("nan")]), "per class"),
        (lambda: class_p_values([0.1, 0.2], [0], [[0.1, 0.2]]), "whole numbers"),
    ],
)
def test_bad_input_is_refused_with_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
