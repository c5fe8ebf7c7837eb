"""The whole way from probabilities to sets, against the exact law of coverage, in the long run.

FALSE_ALARM is the chance that a right implementation fails one of these tests of the law, over the
choice of its seed; there are about ten, so that a suite of fresh seeds would fail 1 % of the time.
A wrong rank is found with room to spare: the controls must be below FOUND.
"""

import numpy as np
import pytest
from scipy import stats

from ringfence.models.conformal.rank import rank
from ringfence.models.conformal.sets import prediction_sets, threshold
from ringfence.models.guarantee.law import coverage_p_value
from ringfence.models.hashing import SCORE, uniforms
from ringfence.models.scores import aps, aps_true

FALSE_ALARM = 0.001
FOUND = 1e-6


def sequences(count, n, m, seed):
    """Yield networks' outputs of n calibration and m evaluated nodes, with true classes and u."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        probabilities = rng.dirichlet(np.full(6, 0.3), size=n + m)
        shaken = 0.6 * probabilities + 0.4 * rng.dirichlet(np.full(6, 0.3), size=n + m)
        classes = (shaken.cumsum(axis=1) < rng.random((n + m, 1))).sum(axis=1).clip(0, 5)
        u = uniforms([f"i:{j}" for j in range(n + m)], seed=f"{seed}/{i}", purpose=SCORE)
        yield probabilities, classes, u


def covered_counts(rule, count, n, m, alpha, seed):
    found = []
    for probabilities, classes, u in sequences(count, n, m, seed):
        known = aps_true(probabilities[:n], u[:n], classes[:n])
        sets = prediction_sets(aps(probabilities[n:], u[n:]), rule(known, alpha))
        found.append(int(sets[np.arange(m), classes[n:]].sum()))
    return np.array(found)


def one_rank_up(known, alpha):
    return np.sort(known)[rank(len(known), alpha)]


def law_p_value(counts, n, m, alpha):
    """Kolmogorov-Smirnov with a randomised probability transform: uniform under the exact law."""
    rng = np.random.default_rng(0)
    cdf = np.array([coverage_p_value(n, m, k, alpha) for k in range(m + 1)])
    below = np.concatenate(([0.0], cdf))[counts]
    return stats.kstest(below + rng.random(len(counts)) * (cdf[counts] - below), "uniform").pvalue


def test_aps_covers_by_the_exact_law():
    counts = covered_counts(threshold, 300, 50, 100, 0.1, seed=1)
    assert law_p_value(counts, 50, 100, 0.1) > FALSE_ALARM
    assert law_p_value(counts, 50, 100, 0.15) < FOUND  # the control: another promise


@pytest.mark.statistics
@pytest.mark.parametrize(("n", "alpha"), [(20, 0.1), (100, 0.1), (100, 0.05), (9, 0.1)])
def test_aps_covers_by_the_exact_law_and_one_rank_more_does_not(n, alpha):
    m, count = 300, 1500
    counts = covered_counts(threshold, count, n, m, alpha, seed=n)
    assert law_p_value(counts, n, m, alpha) > FALSE_ALARM
    shifted = covered_counts(one_rank_up, count, n, m, alpha, seed=n)
    assert law_p_value(shifted, n, m, alpha) < FOUND


@pytest.mark.statistics
def test_coverage_p_values_keep_their_level_and_find_an_alarm():
    n, m, alpha = 60, 200, 0.1
    counts = covered_counts(threshold, 2000, n, m, alpha, seed=5)
    p = np.array([coverage_p_value(n, m, k, alpha) for k in counts])
    for level in (0.01, 0.05, 0.2):
        assert stats.binomtest(int(np.sum(p <= level)), 2000, level, "greater").pvalue > FALSE_ALARM
    assert coverage_p_value(n, m, int(0.75 * m), alpha) < 0.01
