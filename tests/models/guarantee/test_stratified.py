"""The law of coverage in strata: sums of beta-binomials, against simulation and by hand."""

import numpy as np
import pytest
from scipy.stats import betabinom

from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
)
from ringfence.models.guarantee.law import coverage_band, coverage_p_value, expected_coverage
from ringfence.models.guarantee.stratified import (
    MAX_NODES_FOR_EXACT_SUMS,
    JudgedNodes,
    equivalent_size,
    stratified_band,
    stratified_law,
    stratified_p_value,
)
from ringfence.models.rules.registry import rule_named


def test_one_stratum_has_the_law_of_a_run_without_bands():
    one = [JudgedNodes(60, 200, 0.1)]
    assert stratified_band(one) == coverage_band(60, 200, 0.1)
    assert stratified_p_value(one, 170) == pytest.approx(coverage_p_value(60, 200, 170, 0.1))
    assert equivalent_size([one, [JudgedNodes(60, 9, 0.1)]]) == 60.0


def test_the_law_is_the_sum_over_all_splits_of_the_count():
    strata = [JudgedNodes(20, 3, 0.1), JudgedNodes(35, 4, 0.2)]
    parts = [betabinom(3, 19, 2), betabinom(4, 29, 7)]
    for k, share in enumerate(stratified_law(strata)):
        by_hand = sum(parts[0].pmf(i) * parts[1].pmf(k - i) for i in range(k + 1))
        assert share == pytest.approx(by_hand, abs=1e-14)


def test_large_counts_go_through_a_transform_with_the_same_result():
    strata = [JudgedNodes(300, MAX_NODES_FOR_EXACT_SUMS + 50, 0.1), JudgedNodes(40, 2_300, 0.1)]
    law = stratified_law(strata)
    plain = np.convolve(stratified_law(strata[:1]), stratified_law(strata[1:]))
    np.testing.assert_allclose(law, plain, atol=1e-14)
    assert law.sum() == pytest.approx(1.0)


def test_full_sets_and_empty_strata_add_what_they_must():
    assert stratified_law([JudgedNodes(5, 3, 0.1)]).tolist() == [0.0, 0.0, 0.0, 1.0]
    assert stratified_band([]) == (0.0, 1.0)
    with pytest.raises(ValueError, match="covered"):
        stratified_p_value([JudgedNodes(60, 2, 0.1)], 3)


def covered_counts(rule, alpha, repetitions):
    """Covered due nodes of runs whose scores depend on the degree, nodes in random order."""
    rng, found = np.random.default_rng(11), []
    n, m, nodes = 150, 80, 600
    every = np.sort(rng.geometric(0.25, nodes))
    base = np.log1p(every)
    for _ in range(repetitions):
        order = rng.permutation(nodes)
        calibration, due = order[:n], order[n : n + m]
        scores = rng.normal(size=nodes) - base
        degrees = NodeDegrees(every[calibration], every[due], degree_counts(every))
        result = evaluate(
            NodeScores(scores[calibration], scores[due][:, None], scores[calibration]),
            degrees, Promise((alpha,), rule_named(rule)),
        )  # fmt: skip
        strata = [JudgedNodes(t.n_calibration, t.n_evaluated, alpha) for t in result.thresholds]
        covered = int(result.sets[0].sum())
        found.append((stratified_p_value(strata, covered), covered, strata))
    return found


def test_counts_of_banded_runs_follow_the_law():
    """Probability integral transform: p is above each level as often as the law says."""
    found = covered_counts("auto", 0.1, 600)
    p_values = np.array([p for p, _, _ in found])
    for level in (0.05, 0.2, 0.5):
        share = (p_values <= level).mean()
        assert share <= level + 3.2 * np.sqrt(level / 600)
    strata = [one for *_, of_run in found for one in of_run]
    means = sum(one.m * expected_coverage(one.n, 0.1) for one in strata) / (600 * 80)
    covered = sum(c for _, c, _ in found) / (600 * 80)
    assert covered == pytest.approx(means, abs=0.006)


def test_a_law_that_forgets_the_bands_is_noticed():
    """The control: the same counts by the law of one threshold of all calibration nodes."""
    found = covered_counts("auto", 0.1, 600)
    expected = 1 - int(0.1 * 151) / 151
    covered = sum(c for _, c, _ in found) / (600 * 80)
    assert abs(covered - expected) > 0.006


def test_pooled_runs_spread_at_most_as_their_equivalent_says():
    """Runs that share the calibration nodes of their bands: pooled coverage against the bound."""
    rng, alpha, found = np.random.default_rng(3), 0.1, []
    for _ in range(400):
        bands = [np.sort(rng.random(40)), np.sort(rng.random(90))]
        limits = [band[int(alpha * (len(band) + 1)) - 1] for band in bands]
        hits = sum(int((rng.random(30) >= limit).sum()) for _ in range(10) for limit in limits)
        found.append(hits / 600)
    runs = [[JudgedNodes(40, 30, alpha), JudgedNodes(90, 30, alpha)]] * 10
    low, high = coverage_band(equivalent_size(runs), 600, alpha)
    inside = np.mean([low <= share <= high for share in found])
    assert 0.93 <= inside <= 1.0
