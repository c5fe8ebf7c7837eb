"""The permutation test: exact at every size, and able to see what it should."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from ringfence.models.exchangeability.permutation_test import permutation_test


def _p_values(draw, runs=300, n=15, m=25, permutations=99):
    return np.array(
        [
            permutation_test(
                *draw(np.random.default_rng(run), n, m), seed=run, permutations=permutations
            ).p_value
            for run in range(runs)
        ]
    )


def _alike(rng, n, m):
    return rng.normal(size=n), rng.normal(size=m)


def test_p_values_are_uniform_on_their_grid_when_nodes_are_exchangeable():
    p = _p_values(_alike)
    counts = np.bincount(np.ceil(p * 10 - 1e-9).astype(int), minlength=11)[1:]
    assert stats.chisquare(counts).pvalue > 0.001


def test_ties_only_make_it_more_careful():
    p = _p_values(lambda rng, n, m: (rng.integers(0, 3, n), rng.integers(0, 3, m)))
    for level in (0.05, 0.1, 0.3):
        assert (p <= level).sum() <= stats.binom.ppf(0.999, len(p), level)


def test_counting_without_the_observed_arrangement_would_break_the_level():
    """Negative control: #/B instead of (1 + #)/(B + 1), with 9 reshuffles at the level 0.05."""
    p = _p_values(_alike, runs=1_000, permutations=9)
    broken = (p * 10 - 1) / 9
    assert (p <= 0.05).sum() == 0
    assert (broken <= 0.05).sum() > stats.binom.ppf(0.999, len(p), 0.05)


def test_the_random_test_agrees_with_the_enumeration_of_all_splits():
    """All 20 splits of 3 + 3 scores: the exact p-value lies where 20,000 reshuffles put it."""
    first, second = np.array([0.1, 0.4, 0.5]), np.array([0.45, 0.7, 0.9])
    found = permutation_test(first, second, seed=0, permutations=20_000)
    pooled = np.concatenate([first, second])
    larger = 0
    for chosen in combinations(range(6), 3):
        rest = [i for i in range(6) if i not in chosen]
        split = permutation_test(pooled[list(chosen)], pooled[rest], seed=0, permutations=1)
        larger += split.statistic >= found.statistic * (1 - 1e-9)
    exact = float(Fraction(larger, 20))
    assert found.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))


def test_the_statistic_is_the_anderson_darling_distance_of_scipy():
    """Over 30 samples without ties the two order the samples in the same way."""
    rng = np.random.default_rng(5)
    pairs = [(rng.normal(size=20), rng.normal(rng.random(), 1, size=30)) for _ in range(30)]
    ours = [permutation_test(a, b, seed=0, permutations=1).statistic for a, b in pairs]
    theirs = [_scipy_statistic(a, b) for a, b in pairs]
    assert stats.spearmanr(ours, theirs).statistic > 0.999


def _scipy_statistic(first, second):
    method = stats.PermutationMethod(n_resamples=1, rng=np.random.default_rng(0))
    return stats.anderson_ksamp([first, second], variant="right", method=method).statistic


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("lower", lambda rng, n, m: (rng.normal(size=n), rng.normal(-1, 1, m))),
        ("higher", lambda rng, n, m: (rng.normal(size=n), rng.normal(1, 1, m))),
        ("wider", lambda rng, n, m: (rng.normal(size=n), rng.normal(0, 3, m))),
    ],
)
def test_it_sees_scores_that_moved_or_spread(name, draw):
    p = _p_values(draw, runs=40, n=60, m=120)
    assert (p <= 0.01).mean() > 0.9


def test_words_say_in_which_direction_the_nodes_differ():
    rng = np.random.default_rng(6)
    lower = permutation_test(rng.normal(size=60), rng.normal(-1, 1, 90), seed=0)
    alike = permutation_test(rng.normal(size=60), rng.normal(size=90), seed=0)
    assert lower.higher < 0.3
    assert "conforms less than a calibration node in" in lower.describe()
    assert "90 evaluated and 60 calibration nodes conform alike" in alike.describe()


def test_the_same_seed_gives_the_same_answer_and_constant_scores_give_one():
    rng = np.random.default_rng(7)
    first, second = rng.normal(size=30), rng.normal(size=30)
    assert permutation_test(first, second, seed=3) == permutation_test(first, second, seed=3)
    assert permutation_test(np.ones(5), np.ones(7), seed=0).p_value == 1.0


@pytest.mark.parametrize(
    ("first", "second", "permutations", "words"),
    [
        ([], [1.0], 99, "at least one calibration"),
        ([1.0], [np.nan], 99, "not finite"),
        ([1.0], [2.0], 0, "0 permutations"),
    ],
)
def test_scores_that_cannot_be_tested_are_refused(first, second, permutations, words):
    with pytest.raises(ValueError, match=words):
        permutation_test(first, second, seed=0, permutations=permutations)
