"""Coverage counted over every permutation of few nodes: equalities of fractions, no tolerance."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from ringfence.models.conformal.rank import rank
from ringfence.models.conformal.sets import p_values, prediction_sets, threshold

ALPHAS = [Fraction(k, 20) for k in range(1, 20)] + [Fraction(1, 3), Fraction(2, 7)]


def ours(known, alpha, weights=None, test_weight=1.0):
    return float(threshold(known, alpha, weights, test_weight))


def printed(known, alpha, weights=None, test_weight=1.0):
    """inf{ s_(i) : cum_w(i) / (sum_w + 1) >= alpha }, as printed."""
    weights = np.ones(len(known)) if weights is None else np.asarray(weights)
    order = np.argsort(known)
    share = np.cumsum(weights[order]) / (weights.sum() + test_weight)
    return np.asarray(known)[order][min(np.searchsorted(share, float(alpha)), len(known) - 1)]


def clamped(known, alpha, weights=None, test_weight=1.0):
    return max(ours(known, alpha), min(known))


def sorted_apart(known, alpha, weights=None, test_weight=1.0):
    """Scores sorted, weights left as they came."""
    return ours(np.sort(known), alpha, weights, test_weight)


def unweighted(known, alpha, weights=None, test_weight=1.0):
    return ours(known, alpha)


def coverage(rule, n, alpha):
    """Share of all orders of n + 1 distinct scores in which the last one is covered."""
    orders = list(permutations(range(n + 1)))
    covered = sum(order[-1] >= rule(np.array(order[:-1], float), alpha) for order in orders)
    return Fraction(covered, len(orders))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_coverage_over_all_orders_is_one_minus_the_rank_over_n_plus_1(n):
    for alpha in ALPHAS:
        expected = 1 - Fraction(rank(n, float(alpha)), n + 1)
        assert coverage(ours, n, float(alpha)) == expected
        assert 1 - alpha <= expected <= 1 - alpha + Fraction(1, n + 1)


@pytest.mark.parametrize("rule", [printed, clamped])
def test_the_printed_quantile_and_the_clamp_fall_short_over_all_orders(rule):
    short = [coverage(rule, 5, float(alpha)) < 1 - alpha for alpha in ALPHAS]
    assert any(short)


@pytest.mark.parametrize(("n", "m"), [(4, 3), (5, 4), (9, 3)])
def test_the_number_covered_over_all_orders_has_the_beta_binomial_law(n, m):
    for alpha in (0.1, 0.2, 0.35, 0.5):
        found, shifted = Counter(), Counter()
        for places in combinations(range(n + m), n):
            known = np.array(places, float)
            rest = np.array([i for i in range(n + m) if i not in places], float)
            found[int(prediction_sets(rest, threshold(known, alpha)).sum())] += 1
            shifted[int(np.sum(rest >= printed(known, alpha)))] += 1
        law = beta_binomial(n, m, rank(n, alpha))
        total = math.comb(n + m, n)
        assert {k: Fraction(c, total) for k, c in found.items()} == law
        exact = Fraction(str(alpha)) * (n + 1)
        if exact.denominator != 1:  # where floor and ceil differ, the printed rank has another law
            assert {k: Fraction(c, total) for k, c in shifted.items()} != law


def beta_binomial(n, m, missed):
    if missed == 0:
        return {m: Fraction(1)}
    ways = {
        k: math.comb(m - k + missed - 1, missed - 1) * math.comb(k + n - missed, n - missed)
        for k in range(m + 1)
    }
    return {k: Fraction(w, math.comb(n + m, n)) for k, w in ways.items() if w}


def test_ties_can_only_raise_coverage():
    for scores in ([0, 0, 1, 1, 2], [0, 0, 0, 0, 0], [0, 1, 1, 1, 2]):
        for alpha in ALPHAS:
            orders = list(permutations(scores))
            covered = sum(o[-1] >= ours(np.array(o[:-1], float), float(alpha)) for o in orders)
            assert Fraction(covered, len(orders)) >= 1 - alpha


WEIGHTS = [
    [1.0, 0.5, 0.25, 0.5, 1.0, 0.125],
    [1.0, 1.0, 0.5, 0.25, 0.25, 0.125],  # decreasing along the scores
    [0.125, 0.25, 0.25, 0.5, 1.0, 1.0],  # increasing along them
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
]


def weighted_coverage(rule, weights, n, alpha, own_weight):
    """P(first evaluated node covered) when a permutation weighs the product of w over the rest.

    Points are drawn without weights for calibration and with weights w for evaluation (Tibshirani
    et al. 2019); for EdgeEx w = 1 / degree. n points calibrate, the others are evaluated.
    """
    total = covered = Fraction(0)
    for order in permutations(range(len(weights))):
        mass = math.prod(Fraction(weights[i]) for i in order[n:])
        known, test = np.array(order[:n], float), order[n]
        own = weights[test] if own_weight else 1.0
        limit = rule(known, alpha, [weights[i] for i in order[:n]], own)
        total += mass
        covered += mass * (test >= limit)
    return covered / total


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("own_weight", [True, False], ids=["exact weight", "weight 1"])
def test_weighted_coverage_over_all_permutations_keeps_the_promise(weights, own_weight):
    for n, alpha in ((5, 0.1), (5, 0.25), (5, 0.4), (4, 0.5)):
        found = weighted_coverage(ours, weights, n, alpha, own_weight)
        assert found >= 1 - Fraction(str(alpha))
        if own_weight and n == 5:  # and is above it by at most one jump
            assert found <= 1 - Fraction(str(alpha)) + Fraction(max(weights) / sum(weights))


@pytest.mark.parametrize("rule", [printed, unweighted, sorted_apart])
def test_wrong_weighted_rules_break_the_promise_for_some_weights(rule):
    found = [
        weighted_coverage(rule, weights, 5, alpha, True) - (1 - Fraction(str(alpha)))
        for weights in WEIGHTS
        for alpha in (0.25, 0.5)
    ]
    assert min(found) < 0


def test_p_values_are_valid_over_all_weighted_permutations():
    weights = WEIGHTS[1]
    levels = [Fraction(k, 16) for k in range(1, 16)]
    total, below = Fraction(0), Counter()
    for order in permutations(range(6)):
        mass = Fraction(weights[order[-1]])
        known = np.array(order[:-1], float)
        mine = [weights[i] for i in order[:-1]]
        p = float(p_values(known, [float(order[-1])], mine, weights[order[-1]])[0])
        total += mass
        for level in levels:
            below[level] += mass * (p <= level)
    assert all(below[level] / total <= level for level in levels)
