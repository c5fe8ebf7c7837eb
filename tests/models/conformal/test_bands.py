"""Degree bands: cuts from all nodes, unions symmetric in the judged node, exact p-values."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.conformal.bands import (
    band_numbers,
    band_strata,
    cut_degrees,
    fewest_nodes,
    has_bands,
    merge_bands,
)
from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
)
from ringfence.models.conformal.strata import Stratum, stratified_p_values
from ringfence.models.rules.degree_bands import DEGREE_BANDS
from ringfence.models.rules.node_ex import NODE_EX


def test_a_band_is_closed_when_enough_are_expected_in_it_and_beyond_it():
    counts = np.bincount(np.repeat([1, 2, 3, 4, 20], [300, 300, 200, 150, 50]))
    assert cut_degrees(counts, 100, 0.1).tolist() == [0, 2, 3]  # beyond 3: 20 of 30 expected
    assert cut_degrees(counts, 1_000, 0.1).tolist() == [0, 2, 3, 4, 5]
    assert cut_degrees(counts, 59, 0.1).tolist() == [0]
    assert cut_degrees(np.zeros(0, np.int64), 100, 0.1).tolist() == [0]


def test_cuts_ask_how_many_calibrate_and_never_who():
    rng = np.random.default_rng(0)
    degrees = rng.geometric(0.2, 2_000)
    lows = {tuple(cut_degrees(degree_counts(degrees), 300, 0.1)) for _ in range(3)}
    assert len(lows) == 1


def test_bands_need_six_over_alpha_calibration_nodes():
    assert [has_bands(n, 0.1) for n in (59, 60)] == [False, True]
    assert [has_bands(n, 0.05) for n in (119, 120)] == [False, True]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=9), st.integers(1, 40))
def test_unions_are_runs_of_bands_and_hold_enough_or_everybody(counts, least):
    starts = merge_bands(np.array(counts), least)
    assert (np.diff(starts) >= 0).all()
    assert (starts <= np.arange(len(counts))).all()
    unions = {start: sum(np.array(counts)[starts == start]) for start in set(starts.tolist())}
    assert len(unions) == 1 or min(unions.values()) >= least


def nodes_by_band(per_band, bands):
    """Degrees of a small graph with `bands` bands, and the lowest degree of each."""
    return np.repeat(np.arange(bands) * 2, per_band), np.arange(bands) * 2


def ranks_by_stratum(scores, degrees, lows, n, alpha, strata_of):
    """How often each rank occurs in each stratum of k calibration nodes.

    Over all choices of n calibration nodes and of a node to judge: what node exchangeability draws
    from, given the graph.
    """
    nodes, found = range(len(scores)), {}
    for chosen in itertools.combinations(nodes, n):
        calibration = np.array(chosen)
        for judged in set(nodes) - set(chosen):
            (one,) = strata_of(lows, degrees[calibration], degrees[[judged]], alpha)
            k = len(one.calibration)
            p = stratified_p_values(scores[calibration], scores[[[judged]]], [one])[0, 0]
            counts = found.setdefault((one.band, k), np.zeros(k + 1, np.int64))
            counts[round(p * (k + 1)) - 1] += 1
    return found


def without_the_judged_node(lows, calibration_degrees, due_degrees, alpha):
    """The obvious way, which is not exact: bands are merged by their calibration nodes alone."""
    known, due = band_numbers(lows, calibration_degrees), band_numbers(lows, due_degrees)
    unions = merge_bands(np.bincount(known, minlength=len(lows)), fewest_nodes(alpha))
    first = int(unions[due[0]])
    return [Stratum(str(first), np.flatnonzero(unions[known] == first), np.array([0]))]


def small_graph(seed):
    degrees, lows = nodes_by_band(3, 3)
    scores = np.random.default_rng(seed).random(9) + degrees * (0.5 if seed % 2 else -0.5)
    return scores, degrees, lows


@pytest.mark.parametrize("seed", range(4))
def test_p_values_are_uniform_over_every_choice_of_calibration_nodes(seed):
    found = ranks_by_stratum(*small_graph(seed), 5, 0.75, band_strata)
    assert len(found) > 4  # unions of several kinds and sizes occur
    assert all(len(set(counts.tolist())) == 1 for counts in found.values())


def test_merging_without_the_judged_node_is_not_exact():
    """The control."""
    found = ranks_by_stratum(*small_graph(0), 5, 0.75, without_the_judged_node)
    assert any(len(set(counts.tolist())) > 1 for counts in found.values())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(20, 400), st.integers(1, 30))
def test_sets_are_nested_over_alphas_and_every_due_node_has_a_band(seed, n, m):
    rng = np.random.default_rng(seed)
    alphas = (0.1, 0.05, 0.2, 0.5)
    every = rng.geometric(0.3, n + m + 200)
    degrees = NodeDegrees(every[:n], every[n : n + m], degree_counts(every))
    scores = NodeScores(rng.normal(size=n), rng.normal(size=(m, 4)), rng.normal(size=n))
    found = evaluate(scores, degrees, Promise(alphas, DEGREE_BANDS))
    by_alpha = dict(zip(alphas, found.sets, strict=True))
    for small, large in itertools.pairwise(sorted(alphas)):
        assert (by_alpha[large] <= by_alpha[small]).all()
    judged = sum(one.n_evaluated for one in found.thresholds if one.alpha == 0.1)
    assert judged == m
    for one in found.thresholds:  # the threshold says what the p-values say
        inside = np.array([band == one.band for band in found.bands])
        at = alphas.index(one.alpha)
        assert (found.sets[at][inside] == (scores.due[inside] >= one.threshold)).all()


def test_bands_of_one_alpha_alone_would_break_the_nesting():
    """The control: bands cut for each alpha by itself give sets that are not nested."""
    rng, crossed = np.random.default_rng(5), 0
    for _ in range(40):
        every = rng.geometric(0.3, 800)
        degrees = NodeDegrees(every[:300], every[300:340], degree_counts(every))
        known, due = rng.normal(size=300) + every[:300], rng.normal(size=(40, 4)) + 4
        scores = NodeScores(known, due, np.ones(1))
        sets = {
            a: evaluate(scores, degrees, Promise((a,), DEGREE_BANDS)).sets[0] for a in (0.1, 0.2)
        }
        crossed += int((sets[0.2] & ~sets[0.1]).any())
    assert crossed > 0


def test_with_few_calibration_nodes_everybody_is_compared_with_everybody():
    rng = np.random.default_rng(1)
    every = rng.geometric(0.3, 300)
    degrees = NodeDegrees(every[:50], every[50:60], degree_counts(every))
    scores = NodeScores(rng.normal(size=50), rng.normal(size=(10, 3)), rng.normal(size=50))
    banded = evaluate(scores, degrees, Promise((0.1,), DEGREE_BANDS))
    plain = evaluate(scores, degrees, Promise((0.1,), NODE_EX))
    assert set(banded.bands) == {""}
    assert (banded.p_values == plain.p_values).all()
    assert banded.threshold == plain.threshold == banded.threshold_node
