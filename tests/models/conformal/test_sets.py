"""Set <=> p > alpha, nested, in any order and batch, constant weights, extreme weights, errors."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.conformal.sets import (
    fill_empty,
    p_values,
    prediction_sets,
    sets_from_p_values,
    threshold,
)

ALPHAS = [0.0, 0.001, 0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9, 0.999]
grid = st.integers(-4, 4).map(lambda i: i / 4)  # few values: ties abound
weight = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-17, 0.1, 1 / 3, 1.0, 3.0, 1e17, 1e300]),
    st.floats(0.0, 1e300, allow_subnormal=False),
)
positive = weight.filter(lambda w: w > 0)


@st.composite
def problems(draw):
    n = draw(st.integers(0, 14))
    m = draw(st.integers(1, 4))
    return {
        "known": np.array(draw(st.lists(grid, min_size=n, max_size=n))),
        "weights": np.array(draw(st.lists(weight, min_size=n, max_size=n))),
        "scores": np.array(draw(st.lists(grid, min_size=3 * m, max_size=3 * m))).reshape(m, 3),
        "test": draw(positive),
        "tests": np.array(draw(st.lists(positive, min_size=m, max_size=m))),
        "order": np.array(draw(st.permutations(range(n))), dtype=int),
    }


def exact_p(known, weights, score, test):
    below = sum(
        (Fraction(w) for s, w in zip(known, weights, strict=True) if s <= score), Fraction(0)
    )
    return (below + Fraction(test)) / (sum(map(Fraction, weights), Fraction(0)) + Fraction(test))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_weighted_p_values_are_the_exact_fractions_rounded_once(problem):
    known, weights, scores = problem["known"], problem["weights"], problem["scores"]
    one = p_values(known, scores, weights, problem["test"])
    each = p_values(known, scores, weights, problem["tests"])
    for (i, y), score in np.ndenumerate(scores):
        exact = exact_p(known, weights, score, problem["test"])
        assert one[i, y] == max(exact.numerator / exact.denominator, 5e-324)
        exact = exact_p(known, weights, score, problem["tests"][i])
        assert each[i, y] == max(exact.numerator / exact.denominator, 5e-324)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_threshold_and_p_value_give_the_same_sets(problem):
    known, scores = problem["known"], problem["scores"]
    for weights in (None, problem["weights"]):
        for test in (1.0, problem["test"], problem["tests"]):
            p = p_values(known, scores, weights, test)
            q = threshold(known, ALPHAS, weights, test)
            for alpha, limit in zip(ALPHAS, q, strict=True):
                sets = prediction_sets(scores, limit)
                assert np.array_equal(sets, sets_from_p_values(p, alpha))
                assert np.array_equal(sets, p > alpha)  # what `r.p > 0.1` does in Cypher


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems())
def test_order_and_batches_change_no_bit(problem):
    known, weights, order = problem["known"], problem["weights"], problem["order"]
    scores, tests = problem["scores"], problem["tests"]
    for mass, moved in ((None, None), (weights, weights[order])):
        whole = p_values(known, scores, mass, tests)
        assert np.array_equal(p_values(known[order], scores, moved, tests), whole)
        rows = [
            p_values(known, scores[i : i + 1], mass, tests[i : i + 1]) for i in range(len(scores))
        ]
        assert np.array_equal(np.concatenate(rows), whole)
        limits = threshold(known, ALPHAS, mass, tests)
        assert np.array_equal(threshold(known[order], ALPHAS, moved, tests), limits)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems(), positive)
def test_constant_weights_are_no_weights(problem, constant):
    known, scores = problem["known"], problem["scores"]
    weights = np.full(len(known), constant)
    assert np.array_equal(p_values(known, scores, weights, constant), p_values(known, scores))
    assert np.array_equal(threshold(known, ALPHAS, weights, constant), threshold(known, ALPHAS))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(problems())
def test_sets_are_nested_in_alpha(problem):
    q = threshold(problem["known"], ALPHAS, problem["weights"], problem["test"])
    assert np.array_equal(q, np.sort(q))


def test_the_same_call_twice_gives_the_same_bits():
    rng = np.random.default_rng(0)
    known, weights, scores = rng.normal(size=500), rng.random(500), rng.normal(size=(700, 4))
    first, second = (p_values(known, scores, weights).tobytes() for _ in range(2))
    assert first == second


def test_float_sums_would_change_with_the_order_and_integers_do_not():
    rng = np.random.default_rng(0)
    known, weights = rng.normal(size=3000), 1.0 / rng.integers(1, 60, 3000)
    scores, order = rng.normal(size=(50, 3)), rng.permutation(3000)
    ours = p_values(known, scores, weights)
    assert np.array_equal(p_values(known[order], scores, weights[order]), ours)

    def by_float_sums(known, weights):
        return np.array([weights[known <= s].sum() + 1.0 for s in scores.ravel()])

    plain, moved = by_float_sums(known, weights), by_float_sums(known[order], weights[order])
    assert not np.array_equal(plain, moved)


def test_float_weights_would_move_a_tie_and_integers_do_not():
    third = 1 / 3  # three tenths of ten equal weights: p = 0.3 is not above 0.3
    known, weights = np.arange(9.0), np.full(9, third)
    assert p_values(known, [1.5], weights, third) == 0.3
    assert threshold(known, 0.3, weights, third) == 2.0
    caught = [
        np.cumsum(np.full(n + 1, third))[k - 1] / np.cumsum(np.full(n + 1, third))[-1]
        != k / (n + 1)
        for n in range(9, 60)
        for k in range(1, n + 2)
    ]
    assert any(caught)
    single = np.cumsum(np.full(999, 0.1, dtype=np.float32))
    assert np.any(single / single[-1] > np.arange(1, 1000) / 999 + 1e-6)


def test_too_few_calibration_nodes_give_minus_infinity_and_the_full_set():
    for n in range(9):
        limit = threshold(np.arange(n), 0.1)
        assert limit.dtype == np.float64
        assert limit.shape == ()
        assert limit == -np.inf
        assert prediction_sets([[-1e9, 3.0]], limit).all()
    assert threshold(np.arange(9), 0.1) == 0.0
    assert threshold([], 0.1, weights=[]) == -np.inf
    assert (p_values([], [[1.0, 2.0]]) == 1.0).all()


def test_several_alphas_and_several_test_weights_have_their_own_axes():
    known, weights = np.arange(30.0), np.ones(30)
    assert threshold(known, [0.1, 0.2]).shape == (2,)
    assert threshold(known, 0.1, weights, [1.0, 0.5, 0.1]).shape == (3,)
    assert threshold(known, [0.1, 0.2], weights, [1.0, 0.5, 0.1]).shape == (2, 3)
    assert threshold(known, 0.1, None, [1.0, 5.0]).tolist() == [2.0, -np.inf]


def test_float32_alphas_are_read_as_they_print():
    known = np.arange(9)
    assert threshold(known, torch.tensor([0.7, 0.3])).tolist() == [6.0, 2.0]
    assert int(float(np.float32(0.7)) * 10) == 6  # the control: the double of a float32 is another


@pytest.mark.parametrize("weights", [None, np.zeros(4), np.ones(4)])
def test_no_nodes_to_evaluate_give_no_results(weights):
    known, none = np.arange(4.0), np.zeros((0, 3))
    for tests in (1.0, np.zeros(0)):
        assert p_values(known, none, weights, tests).shape == (0, 3)
        assert p_values(known, none[:, 0], weights, tests).shape == (0,)
    assert threshold(known, 0.3, weights, np.zeros(0)).shape == (0,)
    assert prediction_sets(none, 0.5).shape == (0, 3)


def test_weights_of_zero_leave_the_full_set():
    assert threshold(np.arange(50.0), 0.1, np.zeros(50)) == -np.inf
    assert (p_values(np.arange(50.0), [-1.0], np.zeros(50)) == 1.0).all()


def test_empty_sets_can_be_filled_with_the_best_class_and_no_other_set_changes():
    scores = torch.tensor([[-0.9, -0.8, -0.8], [-0.1, -0.5, -0.9]], dtype=torch.float64)
    sets = prediction_sets(scores, -0.2)
    assert sets.sum(1).tolist() == [0, 1]
    assert fill_empty(sets, scores).tolist() == [[False, True, True], [True, False, False]]
    with pytest.raises(ValueError, match="needed: the same"):
        fill_empty(sets[:1], scores)


def test_a_threshold_per_node_is_applied_row_by_row():
    sets = prediction_sets([[0.1, 0.5], [0.1, 0.5]], [0.3, 0.0])
    assert sets.tolist() == [[False, True], [True, True]]
    assert prediction_sets([0.1, 0.5], [0.3, 0.0]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: threshold([0.1, float("nan")], 0.1), "NaN"),
        (lambda: threshold([[0.1]], 0.1), "shape"),
        (lambda: threshold([0.1], 1.1), "alpha"),
        (lambda: threshold([0.1], float("nan")), "alpha"),
        (lambda: threshold([0.1], 0.1, weights=[-1.0]), "at least 0"),
        (lambda: threshold([0.1], 0.1, weights=[float("inf")]), "finite"),
        (lambda: threshold([0.1], 0.1, weights=[1.0, 1.0]), "one per score"),
        (lambda: threshold([0.1], 0.1, weights=[1.0], test_weight=0.0), "above 0"),
        (lambda: p_values([0.1], [float("nan")]), "NaN"),
        (lambda: p_values([0.1], [0.1, 0.2], test_weight=[1.0]), "2 nodes"),
        (lambda: prediction_sets([[0.1, 0.2]], [0.1, 0.2]), "1 nodes"),
        (lambda: prediction_sets([[0.1, 0.2]], float("nan")), "NaN"),
        (lambda: prediction_sets([[float("nan"), 0.2]], 0.1), "NaN"),
        (lambda: sets_from_p_values([0.1], 2.0), "alpha"),
    ],
)
def test_bad_input_is_refused_with_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
