"""The rank of the threshold is floor(alpha (n + 1)), by integer arithmetic, everywhere."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.conformal.rank import rank, read_alpha
from ringfence.models.conformal.sets import p_values, prediction_sets, threshold

THOUSANDTHS = [k / 1000 for k in range(1, 1000)]
LARGEST_N = 2000


def integer_ranks(n):
    return [k * (n + 1) // 1000 for k in range(1, 1000)]


def wrong(rule):
    """How many of all (n, alpha) a rule for the rank gets wrong; n in steps to save time."""
    return sum(
        rule(n, alpha) != exact
        for n in range(2, LARGEST_N + 1, 37)
        for alpha, exact in zip(THOUSANDTHS, integer_ranks(n), strict=True)
    )


def test_the_rank_is_exact_for_every_n_to_2000_and_alpha_in_thousandths():
    for n in range(1, LARGEST_N + 1):
        assert [rank(n, alpha) for alpha in THOUSANDTHS] == integer_ranks(n)


@pytest.mark.slow
def test_the_threshold_is_the_score_of_that_rank_and_minus_infinity_at_rank_0():
    for n in range(1, LARGEST_N + 1):
        found = threshold(np.arange(1, n + 1), THOUSANDTHS)
        expected = np.array(integer_ranks(n), dtype=np.float64)
        assert np.array_equal(found, np.where(expected == 0, -np.inf, expected))


def test_comparing_stored_p_values_with_a_decimal_as_doubles_gives_the_same_rank():
    alphas = np.array(THOUSANDTHS)
    for n in range(1, LARGEST_N + 1):
        scores = np.arange(1.0, n + 1)
        p = p_values(scores, np.concatenate(([0.0], scores)))
        out = np.searchsorted(p, alphas, side="right")  # how many are not `> alpha`
        assert np.array_equal(out, integer_ranks(n))


@pytest.mark.parametrize(
    "rule",
    [
        lambda n, a: int((1.0 - (1.0 - a)) * (n + 1)),  # alpha from a confidence
        lambda n, a: int(a * (n + 1)),
        lambda n, a: n + 1 - int(np.ceil((n + 1) * (1.0 - a))),
        lambda n, a: int(np.ceil(a * (n + 1))),  # the printed quantile
        lambda n, a: int(np.float32(a) * np.float32(n + 1)),
        lambda n, a: max(1, rank(n, a)),  # clamped to the smallest score
    ],
)
def test_the_usual_ways_to_compute_the_rank_are_caught(rule):
    assert wrong(rule) > 0
    assert wrong(rank) == 0


def test_a_ninety_percent_confidence_taken_from_one_is_no_alpha_of_a_tenth():
    assert int((1 - 0.9) * 10) == 0
    assert rank(9, 0.1) == 1
    assert threshold(np.arange(9), 0.1) == 0.0


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.integers(1, 10**6), st.integers(0, 10**9))
def test_nine_decimals_and_a_million_nodes_are_exact(n, billionths):
    alpha = billionths / 10**9
    assert rank(n, alpha) == billionths * (n + 1) // 10**9


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.integers(1, 10**5), st.integers(1, 10**5), st.data())
def test_any_fraction_is_exact_as_long_as_doubles_can_tell_it_from_its_neighbours(n, s, data):
    r = data.draw(st.integers(0, s))
    assert s * (n + 1) < 2**52
    assert rank(n, r / s) == r * (n + 1) // s
    assert ((r * (n + 1) // s) / (n + 1) > r / s) is False


def test_a_third_means_a_third():
    assert rank(2, 1 / 3) == 1
    assert int(Fraction(str(1 / 3)) * 3) == 0  # the control: its decimals are less than a third
    assert threshold([0.1, 0.2], 1 / 3) == 0.1
    assert not (p_values([0.1, 0.2], [0.0]) > 1 / 3)


@pytest.mark.parametrize("alpha", [Decimal("0.7"), Fraction(7, 10), "0.7", np.float32(0.7), 0.7])
def test_an_alpha_is_read_as_it_prints(alpha):
    assert read_alpha(alpha) == 0.7
    assert threshold(np.arange(1, 10), alpha) == 7.0
    assert threshold(np.arange(1, 10), torch.tensor([0.7])).tolist() == [7.0]


@pytest.mark.parametrize("n", [0, 1, 5, 8])
def test_rank_0_is_the_full_set_whatever_the_scores(n):
    limit = threshold(np.linspace(-1.0, 0.0, n), 0.1)
    assert limit == -np.inf
    scores = np.array([[-np.inf, -1e300, 0.0]])
    assert prediction_sets(scores, limit).all()
    assert (p_values(np.linspace(-1.0, 0.0, n), scores) > 0.1).all()
    if n:  # the control: clamping to the smallest score leaves classes out
        assert not prediction_sets(scores, -1.0).all()


def test_alpha_0_is_the_full_set_and_alpha_1_the_empty_one():
    known = np.arange(50.0)
    assert threshold(known, 0.0) == -np.inf
    assert threshold(known, 1.0) == np.inf
    assert threshold(known, [0.0, 1.0], np.full(50, 1e300), 1e-300).tolist() == [
        -np.inf,
        np.inf,
    ]
    assert (p_values(known, [-1.0], np.full(50, 1e300), 1e-300) > 0.0).all()
