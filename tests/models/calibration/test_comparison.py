"""Permutation tests of due against calibration nodes: their level, their power, their strata."""

import numpy as np
import pytest

from ringfence.models.calibration.comparison import (
    LEVEL,
    compare_nodes,
    describe_differences,
    false_alarms_per_year,
)


def zeros(values):
    return np.zeros(len(values), np.int64)


def compare(ours, theirs, seed=0):
    return compare_nodes({"degree": ours}, {"degree": theirs}, zeros(ours), zeros(theirs), seed)[0]


@pytest.mark.slow
def test_p_values_are_valid_with_ties():
    rng = np.random.default_rng(1)
    p = [compare(rng.poisson(3, 80), rng.poisson(3, 40), seed).p_value for seed in range(400)]
    for level in (0.05, 0.1, 0.3):
        assert np.mean(np.array(p) <= level) < level + 3 * (level / 400) ** 0.5


def test_a_shifted_quantity_is_found_and_said_in_words():
    rng = np.random.default_rng(2)
    found = compare(rng.poisson(3, 400), rng.poisson(6, 200))
    assert found.differs
    assert "degree (median 6, calibration nodes 3)" in describe_differences([found])


def test_a_difference_that_the_strata_account_for_is_not_reported():
    rng = np.random.default_rng(3)
    band = np.concatenate([np.zeros(300, np.int64), np.ones(100, np.int64)])
    due_band = np.concatenate([np.zeros(100, np.int64), np.ones(300, np.int64)])
    ours, theirs = rng.normal(5.0 * band), rng.normal(5.0 * due_band)
    within = compare_nodes({"x": ours}, {"x": theirs}, band, due_band, 0)[0]
    pooled = compare_nodes({"x": ours}, {"x": theirs}, zeros(ours), zeros(theirs), 0)[0]
    assert not within.differs
    assert pooled.differs


def test_a_difference_inside_the_strata_is_reported():
    rng = np.random.default_rng(4)
    band, due_band = rng.integers(0, 2, 400), rng.integers(0, 2, 200)
    found = compare_nodes(
        {"x": rng.normal(5.0 * band)}, {"x": rng.normal(5.0 * due_band + 1)}, band, due_band, 0
    )
    assert found[0].differs


def test_several_quantities_share_the_level():
    rng = np.random.default_rng(5)
    one = {"degree": rng.poisson(3, 200)}
    three = {**one, "a": rng.random(200), "b": rng.random(200)}
    due_one = {"degree": rng.poisson(4, 100)}
    due_three = {**due_one, "a": rng.random(100), "b": rng.random(100)}
    side = zeros(one["degree"]), zeros(due_one["degree"])
    alone = compare_nodes(one, due_one, *side, 7)[0].p_value
    together = compare_nodes(three, due_three, *side, 7)[0].p_value
    assert together == pytest.approx(min(1.0, 3 * alone))


def test_sides_without_a_common_stratum_have_nothing_to_compare():
    values = np.arange(5.0)
    assert compare_nodes({"x": values}, {"x": values}, zeros(values), zeros(values) + 1, 0) == []


def test_equal_sides_differ_in_nothing():
    values = np.arange(50.0)
    found = compare(values, values)
    assert found.distance == 0.0
    assert found.p_value == 1.0
    assert describe_differences([found]) == ""


def test_the_rate_of_false_reports_follows_the_schedule():
    assert false_alarms_per_year(12) == pytest.approx(12 * LEVEL)
