"""One read of the scores gives the p-values and sets of the strata one after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.conformal import calibration_ranks
from ringfence.models.conformal.batched_p_values import compute_p_values
from ringfence.models.conformal.strata import Stratum, stratified_p_values

SCORES = st.sampled_from([-np.inf, -1.0, -0.5, -0.5 + 2**-54, -0.0, 0.0, 0.25, 1e-300, 3.0])


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    """Send inputs of every size to the compiled loop."""
    monkeypatch.setattr(calibration_ranks, "MAX_SCORES_FOR_NUMPY", -1)


def plain(known, scores, strata, levels, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(calibration_ranks, "MAX_SCORES_FOR_NUMPY", 10**9)
        p = stratified_p_values(known, scores, strata)
    return p, p[None] > levels[:, None, :]


def draw_strata(rng, calibration, due, classes, count):
    """Strata that overlap, leave nodes out, share due nodes and have weights."""
    found = []
    for i in range(count):
        mine = np.flatnonzero(rng.random(calibration) < rng.choice([0.0, 0.3, 1.0]))
        theirs = np.flatnonzero(rng.random(due) < 0.6)
        if found and rng.random() < 0.3:
            theirs = found[-1].due
        class_index = None if rng.random() < 0.5 else int(rng.integers(0, classes))
        weights = None if rng.random() < 0.5 else rng.random(len(mine))
        own = 1.0 if rng.random() < 0.5 else 0.3
        found.append(Stratum(f"s{i}", mine, theirs, class_index, weights, own))
    return found


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tied=st.lists(SCORES, min_size=1, max_size=30))
def test_any_strata_give_the_bits_of_one_after_the_other(seed, tied):
    rng = np.random.default_rng(seed)
    calibration, due, classes = rng.integers(0, 40), rng.integers(1, 30), rng.integers(1, 5)
    pool = np.append(tied, rng.random(3))
    known = rng.choice(pool, calibration)
    scores = rng.choice(pool, (due, classes))
    strata = draw_strata(rng, calibration, due, classes, rng.integers(0, 6))
    levels = rng.choice([0.1, 0.2, 0.5], (2, classes))
    monkeypatch = pytest.MonkeyPatch()
    expected = plain(known, scores, strata, levels, monkeypatch)
    for workers in (1, 2):
        p, sets = compute_p_values(known, scores, strata, levels, workers)
        assert np.array_equal(p, expected[0])
        assert np.array_equal(sets, expected[1])
    without = compute_p_values(known, scores, strata[:-1], levels)[0]  # control: each counts
    if strata and len(strata[-1].calibration) == 0 and len(strata[-1].due):
        assert (expected[0][strata[-1].due] == 1.0).any()
    assert without.shape == p.shape


@pytest.mark.parametrize("classes", [1, 2, 10, 400])
def test_bands_and_classes_on_many_nodes(classes, monkeypatch):
    rng = np.random.default_rng(classes)
    known, scores = -rng.random(900), -rng.random((2_000_0 // classes, classes))
    half = np.arange(len(scores)) < len(scores) // 3
    parts = np.flatnonzero(half), np.flatnonzero(~half)
    of_class = rng.integers(0, classes, len(known))
    bands = [Stratum("low", np.arange(400), parts[0]), Stratum("", np.arange(900), parts[1])]
    by_class = [
        Stratum(one.band, one.calibration[of_class[one.calibration] == y], one.due, y)
        for one in bands
        for y in range(classes)
    ]
    levels = np.array([[0.1], [0.05]]).repeat(classes, axis=1)
    for strata in (bands, by_class):
        p, sets = compute_p_values(known, scores, strata, levels)
        expected = plain(known, scores, strata, levels, monkeypatch)
        assert np.array_equal(p, expected[0])
        assert np.array_equal(sets, expected[1])
    swapped = compute_p_values(known, scores, [bands[1], bands[1]], levels)[0]
    assert not np.array_equal(
        swapped, compute_p_values(known, scores, bands, levels)[0]
    )  # the control


def test_due_nodes_with_weights_of_their_own_are_judged_by_them(monkeypatch):
    rng = np.random.default_rng(5)
    known, scores = rng.random(50), rng.random((20, 3))
    strata = [Stratum("", np.arange(50), np.arange(20), None, rng.random(50), rng.random(20) + 0.1)]
    levels = np.full((1, 3), 0.1)
    p, sets = compute_p_values(known, scores, strata, levels)
    expected = plain(known, scores, strata, levels, monkeypatch)
    assert np.array_equal(p, expected[0])
    assert np.array_equal(sets, expected[1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_score_is_refused(bad):
    rng = np.random.default_rng(1)
    strata, levels = [Stratum("", np.arange(9), np.arange(40))], np.full((1, 3), 0.1)
    known, scores = rng.random(9), rng.random((40, 3))
    compute_p_values(known, scores, strata, levels, 2)
    scores[37, 2] = bad
    with pytest.raises(ValueError, match="1 of 120 values are NaN or"):
        compute_p_values(known, scores, strata, levels, 2)
    known[3], scores[37, 2] = bad, 0.5
    with pytest.raises(ValueError, match="calibration scores: 1 of 9"):
        compute_p_values(known, scores, strata, levels)
