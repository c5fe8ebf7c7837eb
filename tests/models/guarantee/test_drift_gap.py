"""Barber's gap under an assumed rate of change, and that coverage keeps to it."""

import numpy as np
import pytest

from ringfence.models.conformal.sets import p_values
from ringfence.models.conformal.strata import Stratum, one_stratum
from ringfence.models.conformal.weights import drift_weights
from ringfence.models.guarantee.drift_gap import describe_drift_gap, drift_gap

AGES = np.array([0.0, 10.0, 20.0])


def test_the_gap_of_three_nodes_by_hand():
    weights = drift_weights(AGES, 10.0)  # 1, .5, .25
    strata = one_stratum(3, 1, weights)
    d = np.array([0.0, 0.1, 0.2])
    expected = float((weights * (2 * d - d**2)).sum() / (weights.sum() + 1))
    assert drift_gap(strata, AGES, np.zeros(1), 0.01) == pytest.approx(expected)
    plain = float((2 * d - d**2).sum() / 4)
    assert drift_gap(strata, AGES, np.zeros(1), 0.01, weighted=False) == pytest.approx(plain)
    assert expected < plain  # weights are there to make it smaller


def test_no_change_costs_nothing_and_a_sudden_one_everything_but_the_new():
    strata = one_stratum(3, 1, drift_weights(AGES, 10.0))
    assert drift_gap(strata, AGES, np.zeros(1), 0.0) == 0.0
    everything = drift_gap(strata, AGES, np.zeros(1), 1e9)
    assert everything == pytest.approx(0.75 / 2.75)  # all but the node of today
    assert drift_gap([], AGES, np.zeros(1), 1.0) == 0.0


def test_old_due_nodes_are_compared_with_the_nodes_of_their_time():
    strata = one_stratum(3, 2, None)
    of_today = drift_gap(strata, AGES, np.array([0.0, 0.0]), 0.01)
    of_both_ends = drift_gap(strata, AGES, np.array([0.0, 20.0]), 0.01)
    assert of_both_ends > of_today


def test_the_worst_stratum_counts_and_one_that_judges_nobody_does_not():
    near = Stratum("a", np.array([0]), np.array([0]))
    far = Stratum("b", np.array([2]), np.array([0]))
    nobody = Stratum("c", np.array([2]), np.array([], np.int64))
    due = np.zeros(1)
    assert drift_gap([near, far], AGES, due, 0.01) == drift_gap([far], AGES, due, 0.01) > 0
    assert drift_gap([near, nobody], AGES, due, 0.01) == 0.0


def test_the_sentence_has_every_rate_with_and_without_weights():
    said = describe_drift_gap(one_stratum(3, 1, drift_weights(AGES, 10.0)), AGES, np.zeros(1))
    assert "0.01, 0.1 or 1 % a day" in said
    assert "an assumption" in said
    assert "at most 0.1, 0.7 or 6.7 points (without the weights 0.1, 1.5 or 13.8)" in said


@pytest.mark.statistics
def test_coverage_keeps_to_the_gap_and_not_to_the_promise():
    """Uniform scores that sink by `rate` a day: their laws are rate * days apart, exactly."""
    rng, n, rate, half_life, alpha = np.random.default_rng(1), 60, 0.004, 10.0, 0.1
    ages = np.arange(n, dtype=float)
    weights = drift_weights(ages, half_life)
    covered = {"weighted": 0, "plain": 0}
    rounds = 40_000
    for _ in range(rounds):
        scores = rng.random(n) + rate * ages
        due = np.array([[rng.random()]])
        covered["weighted"] += p_values(scores, due, weights=weights)[0, 0] > alpha
        covered["plain"] += p_values(scores, due)[0, 0] > alpha
    strata = one_stratum(n, 1, weights)
    for name, weighted in (("weighted", True), ("plain", False)):
        gap = drift_gap(strata, ages, np.zeros(1), rate, weighted=weighted)
        error = 4 * np.sqrt(0.25 / rounds)
        assert covered[name] / rounds > 1 - alpha - gap - error
    assert covered["plain"] / rounds < 1 - alpha - 0.03  # the control: drift does cost something
    assert covered["weighted"] > covered["plain"]
