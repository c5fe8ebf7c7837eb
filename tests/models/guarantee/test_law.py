"""The law of coverage, its bands and p-values, against scipy, simulation and enumeration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ringfence.models.conformal.rank import rank
from ringfence.models.guarantee.law import (
    coverage_band,
    coverage_loss,
    coverage_p_value,
    effective_sample_size,
    expected_coverage,
    guarantee,
    smallest_n,
    swap_distance,
)

CASES = [(60, 1000, 0.1), (9, 50, 0.1), (100, 1, 0.05), (2000, 300, 0.01), (19, 2000, 0.5)]


@pytest.mark.parametrize(("n", "m", "alpha"), CASES)
def test_bands_and_p_values_are_those_of_the_beta_binomial(n, m, alpha):
    missed = rank(n, alpha)
    law = stats.betabinom(m, n + 1 - missed, missed)
    for level in (0.5, 0.9, 0.95, 0.999):
        tail = (1 - level) / 2
        low, high = coverage_band(n, m, alpha, level)
        assert (low, high) == (law.ppf(tail) / m, law.ppf(1 - tail) / m)
        assert law.cdf(round(high * m)) - law.cdf(round(low * m) - 1) >= level - 1e-12
    for covered in {0, m // 2, int(0.9 * m), m}:
        assert coverage_p_value(n, m, covered, alpha) == pytest.approx(law.cdf(covered), rel=1e-9)
        both = 2 * min(law.cdf(covered), law.sf(covered - 1))
        found = coverage_p_value(n, m, covered, alpha, alternative="two-sided")
        assert found == pytest.approx(min(1.0, both), rel=1e-9)


def test_the_law_is_what_simulated_calibration_gives():
    n, m, alpha, missed = 20, 50, 0.1, 2
    rng = np.random.default_rng(0)
    limits = np.sort(rng.random((200_000, n)), axis=1)[:, missed - 1]
    covered = rng.binomial(m, 1.0 - limits)
    for k in (35, 40, 45, 49):
        share = np.mean(covered <= k)
        assert abs(share - coverage_p_value(n, m, k, alpha)) < 0.005
        assert abs(share - stats.binom.cdf(k, m, 1 - alpha)) > 0.01  # the control: too narrow


def test_the_law_is_the_count_of_all_orders_of_calibration_and_evaluated_scores():
    n, m, alpha = 5, 4, 0.4
    missed = rank(n, alpha)
    total = math.comb(n + m, n)
    for k in range(m + 1):
        # k covered: m - k evaluated scores lie below the l-th calibration score
        ways = math.comb(m - k + missed - 1, missed - 1) * math.comb(k + n - missed, n - missed)
        lower = coverage_p_value(n, m, k - 1, alpha) if k else 0.0
        assert coverage_p_value(n, m, k, alpha) - lower == pytest.approx(ways / total, rel=1e-12)


def test_without_a_finite_threshold_everything_is_covered():
    assert coverage_band(8, 100, 0.1) == (1.0, 1.0)
    assert coverage_p_value(8, 100, 100, 0.1) == 1.0
    assert coverage_p_value(8, 100, 99, 0.1) == 0.0
    assert expected_coverage(8, 0.1) == 1.0
    assert coverage_band(0, 10, 0.1) == (1.0, 1.0)


def test_nothing_evaluated_says_nothing():
    assert coverage_band(60, 0, 0.1) == (0.0, 1.0)
    assert coverage_p_value(60, 0, 0, 0.1) == 1.0


def test_a_million_evaluated_nodes_are_within_reach_and_agree_with_the_limit():
    low, high = coverage_band(500, 1_000_000, 0.1)
    limit = stats.beta(451, 50)
    assert (low, high) == pytest.approx((limit.ppf(0.025), limit.ppf(0.975)), abs=1e-4)


def test_expected_coverage_lies_within_one_rank_above_the_promise():
    for n in range(1, 300):
        exact = 1 - Fraction((n + 1) // 10, n + 1)
        assert expected_coverage(n, 0.1) == pytest.approx(float(exact), abs=1e-15)
        assert Fraction(9, 10) <= exact <= Fraction(9, 10) + Fraction(1, n + 1) or n < 9


def test_smallest_n_is_the_first_with_a_finite_threshold():
    for k in range(1, 1000):
        n = smallest_n(k / 1000)
        assert n == -(-1000 // k) - 1
        assert rank(n, k / 1000) >= 1
        assert n == 0 or rank(n - 1, k / 1000) == 0
    with pytest.raises(ValueError, match="above 0"):
        smallest_n(0.0)


def test_effective_sample_size_counts_equal_weights_whole_and_bears_extremes():
    assert effective_sample_size([0.3] * 7) == pytest.approx(7.0)
    assert effective_sample_size([1.0, 1.0, 0.0]) == 2.0
    assert effective_sample_size([1e300, 1e300, 1e-300]) == 2.0
    assert effective_sample_size([]) == 0.0
    with pytest.raises(ValueError, match="at least 0"):
        effective_sample_size([1.0, -1.0])


def test_an_effective_size_gives_a_band_around_the_promise_and_never_the_full_set():
    low, high = coverage_band(8.4, 1000, 0.1)
    assert 0.5 < low < 0.9 < high <= 1.0
    assert expected_coverage(8.4, 0.1) == pytest.approx(0.9)
    near, exact = coverage_band(60.001, 1000, 0.1), coverage_band(60, 1000, 0.1)
    assert near == pytest.approx(exact, abs=0.01)


def test_the_drift_bound_is_the_weighted_mean_distance():
    assert coverage_loss([1.0, 1.0], 0.3) == pytest.approx(0.2)
    assert coverage_loss([1.0, 0.0], [0.0, 1.0]) == 0.0  # nodes of another world count for nothing
    assert coverage_loss([1.0, 1.0], [0.0, 1.0]) == pytest.approx(1 / 3)
    assert swap_distance(0.1) == pytest.approx(0.19)
    with pytest.raises(ValueError, match="total-variation"):
        coverage_loss([1.0], [1.5])


def test_the_drift_bound_holds_where_drift_really_costs_coverage():
    n_old, n_new, alpha, d, draws = 40, 9, 0.2, 0.3, 100_000
    rng = np.random.default_rng(1)
    # before the drift, scores were higher with probability d: total variation d from today's law
    old = rng.random((draws, n_old)) + (rng.random((draws, n_old)) < d)
    known = np.concatenate([old, rng.random((draws, n_new))], axis=1)
    limit = np.sort(known, axis=1)[:, rank(n_old + n_new, alpha) - 1]
    missed = np.mean(rng.random(draws) < limit)
    apart = [float(swap_distance(d))] * n_old + [0.0] * n_new
    assert missed > alpha + 0.03  # the promise without the bound is broken
    assert missed <= alpha + coverage_loss([1.0] * (n_old + n_new), apart)
    kept = np.sort(known[:, n_old:], axis=1)[:, rank(n_new, alpha) - 1]
    assert abs(np.mean(rng.random(draws) < kept) - alpha) < 0.005  # weight 0 for the old: no loss


def test_the_sentence_tells_what_is_missing_and_what_is_approximate():
    assert (
        guarantee(5, 0.1).sentence
        == "5 calibration nodes; 9 are needed for 90 %: every set is full"
    )
    assert guarantee(1, 0.1).sentence.startswith("1 calibration node;")
    assert "approximate" not in guarantee(60, 0.1).sentence
    weighted = guarantee(60, 0.1, weights=np.linspace(0.1, 1.0, 60))
    assert weighted.approximate
    assert "approximately" in weighted.sentence
    assert "worth" in weighted.sentence
    assert "less at most 3 % for drift" in guarantee(60, 0.1, loss=0.03).sentence
    thin = guarantee(12, 0.1, weights=[0.5] * 12)
    assert not thin.finite
    assert thin.expected == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: coverage_band(60, 100, 1.5),
        lambda: coverage_band(60, 100, 0.1, level=1.0),
        lambda: coverage_band(-1, 100, 0.1),
        lambda: coverage_p_value(60, 100, 101, 0.1),
        lambda: coverage_p_value(60, 100, 90, 0.1, alternative="upper"),
        lambda: rank(-1, 0.1),
    ],
)
def test_impossible_questions_are_refused(call):
    with pytest.raises(ValueError, match=r"needed|must|between|or more"):
        call()
