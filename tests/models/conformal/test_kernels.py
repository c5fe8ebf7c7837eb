"""The compiled kernels give the bits of the plain definitions, for every input."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.conformal import calibration_ranks, weighted
from ringfence.models.conformal.sets import p_values, threshold
from ringfence.models.scores import adaptive, aps, aps_true, raps, raps_true

RNG = np.random.default_rng(0)


@pytest.fixture
def compiled(monkeypatch):
    """Send inputs of every size to the compiled kernels."""

    def call(function, *args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setattr(calibration_ranks, "MAX_SCORES_FOR_NUMPY", -1)
            return function(*args, **kwargs)

    return call


def rows(n, classes, dtype):
    probabilities = RNG.dirichlet(np.full(classes, 0.4), size=n).astype(dtype)
    probabilities[: n // 3] = np.round(probabilities[: n // 3], 1)  # ties
    probabilities[n // 3 : n // 3 + 5] = 0.0
    return probabilities


@pytest.mark.parametrize("classes", range(1, 13))
def test_the_network_sorts_every_row(classes):
    # a network that sorts all rows of zeros and ones sorts all rows (Knuth, 5.3.4)
    bits = np.array(list(product([0, 1], repeat=classes)))
    for i, j in adaptive.network(classes):
        bits[:, [i, j]] = np.sort(bits[:, [i, j]], axis=1)[:, ::-1]
    assert np.array_equal(bits, np.sort(bits, axis=1)[:, ::-1])
    if classes > 1:  # the control: every comparison is needed by some row
        bits = np.array(list(product([0, 1], repeat=classes)))
        for i, j in adaptive.network(classes)[:-1]:
            bits[:, [i, j]] = np.sort(bits[:, [i, j]], axis=1)[:, ::-1]
        assert not np.array_equal(bits, np.sort(bits, axis=1)[:, ::-1])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [1, 2, 10, 33, 600])
def test_compiled_scores_and_p_values_are_the_plain_ones(compiled, dtype, classes):
    n = 1301 if classes < 100 else 45  # several blocks, and a rest
    given, u = rows(n, classes, dtype), RNG.random(n)
    chosen = RNG.integers(0, classes, size=n)
    plain = raps(given, u, 0.01, 2)
    assert np.array_equal(compiled(raps, given, u, 0.01, 2), plain)
    assert np.array_equal(compiled(aps, given, u), aps(given, u))
    true = plain[np.arange(n), chosen]
    assert np.array_equal(compiled(raps_true, given, u, chosen, 0.01, 2), true)
    assert np.array_equal(compiled(aps_true, given, u, chosen), aps(given, u)[np.arange(n), chosen])
    weights = RNG.random(n)
    for mass, own in ((None, 1.0), (weights, 1.0), (None, 0.5)):
        expected = p_values(true, plain, mass, own)
        assert np.array_equal(compiled(p_values, true, plain, mass, own), expected)


def test_splitting_a_large_input_changes_no_bit():
    given, u = rows(50_000, 10, np.float32), RNG.random(50_000)  # above the size for kernels
    known = aps_true(given[:5000], u[:5000], RNG.integers(0, 10, 5000))
    whole = p_values(known, aps(given, u))
    cuts = [slice(i, i + 777) for i in range(0, 50_000, 777)]
    parts = [p_values(known, aps(given[cut], u[cut])) for cut in cuts]
    assert np.array_equal(np.concatenate(parts), whole)  # compiled as a whole, plain in parts
    assert np.array_equal(aps(given, u) >= threshold(known, 0.1), whole > 0.1)
    order = RNG.permutation(50_000)
    assert np.array_equal(p_values(known[::-1], aps(given[order], u[order])), whole[order])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf, -np.inf])
def test_compiled_kernels_see_a_single_bad_number(compiled, dtype, bad):
    for place in ((0, 0), (700, 9), (1300, 4)):
        given, u = rows(1301, 10, dtype), RNG.random(1301)
        given[place] = bad
        for call in (
            lambda: aps(given, u),  # noqa: B023
            lambda: aps_true(given, u, np.zeros(1301, dtype=int)),  # noqa: B023
        ):
            with pytest.raises(ValueError, match="needed: numbers in"):
                compiled(call)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_compiled_counts_are_those_of_a_search(data):
    values = st.one_of(
        st.floats(allow_nan=False, max_value=1e308),
        st.sampled_from([-np.inf, -1.0, -1.0 + 2**-53, 0.0, -0.0, 5e-324, 1e-300, 1e308, -1e308]),
        st.floats(-1.0, 0.0),
    )
    known = np.sort(np.array(data.draw(st.lists(values, max_size=60))))
    scores = np.array(data.draw(st.lists(values, min_size=1, max_size=60)) + known.tolist())
    expected = np.searchsorted(known, scores, side="right")
    lookup = calibration_ranks.make_lookup(known)
    if lookup is None:
        return
    from ringfence.models.conformal.kernels.rank import count_each

    found = np.empty(len(scores), dtype=np.uint32)
    count_each(scores, lookup.ordered, lookup.low, lookup.scale, lookup.starts, found)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", ["uniform", "piles", "skewed", "equal", "minus infinity"])
def test_large_counts_are_those_of_a_search_for_awkward_scores(kind):
    known = {
        "uniform": RNG.random(30_000),
        "piles": RNG.integers(0, 5, 30_000) / 5,
        "skewed": RNG.beta(0.02, 0.02, 30_000),
        "equal": np.full(3000, 0.5),
        "minus infinity": np.where(RNG.random(3000) < 0.5, -np.inf, RNG.random(3000)),
    }[kind]
    scores = RNG.choice(np.append(known, [-1.0, 2.0, -np.inf]), size=(60_000, 4))
    expected = (np.searchsorted(np.sort(known), scores, side="right") + 1) / (len(known) + 1)
    assert np.array_equal(p_values(known, scores), expected)
    each = p_values(known, scores, test_weight=np.ones(60_000))  # by way of the counts
    assert np.array_equal(each, expected)


@pytest.mark.parametrize("spread", [0, 3, 30, 300])
def test_compiled_weighted_p_values_are_the_exact_ones(spread):
    n = 700
    weights = 10.0 ** RNG.uniform(-spread, spread, n)
    tests = np.append(10.0 ** RNG.uniform(-spread, spread, 90), weights[:10])
    ranks = RNG.integers(0, n + 1, size=(100, 30))
    exact = weighted.exact_sums(weights, tests)
    fast = weighted._compiled(weights, ranks, tests)
    sure = fast >= 0.0
    assert sure.mean() > 0.9
    for i, y in np.argwhere(sure):
        assert fast[i, y] == exact.p(float(tests[i]), int(ranks[i, y]))


def test_a_p_value_half_way_between_two_doubles_is_left_to_integers(compiled):
    weights, own = np.array([2.0**53, 2.0**53 - 1]), np.array([1.0, 3.0])
    ranks = np.array([[0, 1, 2], [0, 1, 2]])
    assert weighted._compiled(weights, ranks, own)[0, 1] == -1.0
    p = compiled(weighted.p_each, weights, ranks, own)
    assert p[0, 1] == 0.5  # (2**53 + 1) / 2**54, to the even neighbour
    exact = weighted.exact_sums(weights, own)
    assert all(p[i, k] == exact.p(own[i], k) for i, k in product(range(2), range(3)))


def test_a_kernel_compiles_where_there_is_no_place_for_a_cache():
    from numba import njit

    from ringfence.models.compile import compiled as compile_kernel

    made = {}
    exec("def twice(x):\n    return 2 * x", made)  # of no file: numba has nowhere to cache it
    with pytest.raises(RuntimeError, match="cannot cache"):
        njit(made["twice"], cache=True)
    assert compile_kernel(made["twice"])(21) == 42
