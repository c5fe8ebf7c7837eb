"""Permutation tests of due against calibration nodes: their level, their power, their strata."""

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.models.calibration.comparison import (
    LEVEL,
    ComparedColumn,
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
    more = {f"column {at}": rng.random(200) for at in range(12)}
    due_one = {"degree": rng.poisson(4, 100)}
    due_more = {f"column {at}": rng.random(100) for at in range(12)}
    side = zeros(one["degree"]), zeros(due_one["degree"])
    alone = compare_nodes(one, due_one, *side, 7)[0].p_value
    together = compare_nodes(one | more, due_one | due_more, *side, 7)[0].p_value
    assert alone <= together
    twice = compare_nodes(one | {"again": one["degree"]}, due_one | {"again": due_one["degree"]},
                          *side, 7)  # fmt: skip
    assert twice[0].p_value == pytest.approx(alone)  # what says the same costs nothing


def test_thirteen_quantities_can_still_differ():
    """Multiplied p-values of 999 permutations could not reach the level beyond nine quantities."""
    rng = np.random.default_rng(6)
    ours = {f"column {at}": rng.normal(size=300) for at in range(13)}
    theirs = {f"column {at}": rng.normal(size=200) + (at == 5) for at in range(13)}
    found = compare_nodes(ours, theirs, np.zeros(300, np.int64), np.zeros(200, np.int64), 0)
    assert [one.name for one in found if one.differs] == ["column 5"]


def test_columns_are_asked_for_at_sampled_nodes_alone_and_may_have_no_medians():
    rng = np.random.default_rng(7)
    degree, due = rng.poisson(3, 3_000), rng.poisson(3, 2_500)
    asked = []

    def columns(ours, theirs):
        asked.extend([len(ours), len(theirs)])
        values = np.concatenate([np.zeros(len(ours)), rng.integers(0, 2, len(theirs))])
        return [ComparedColumn("column kind", values, plain=False)]

    found = compare_nodes(
        {"degree": degree}, {"degree": due}, zeros(degree), zeros(due), 0, columns
    )
    assert asked == [1_000, 1_000]
    assert [one.differs for one in found] == [False, True]
    assert describe_differences(found).startswith(
        "the nodes scored in this run differ from those that the promise was measured on: "
        "column kind; it is not backed"
    )


@pytest.mark.statistics
@pytest.mark.parametrize("together", [0.0, 0.9], ids=["independent", "alike"])
def test_fifteen_quantities_are_reported_as_rarely_as_one(together):
    """Nodes that are alike, with ties and strata: at most one run in a hundred reports any."""
    rng, reported, runs = np.random.default_rng(8), 0, 1_000
    for seed in range(runs):
        common, band = rng.normal(size=(160, 1)), rng.integers(0, 2, 160)
        values = together * common + rng.normal(size=(160, 15)) + 2.0 * band[:, None]
        values[:, 10:] = np.round(values[:, 10:])
        sides = [{str(at): part[:, at] for at in range(15)} for part in np.split(values, [100])]
        found = compare_nodes(*sides, band[:100], band[100:], seed)
        reported += any(one.differs for one in found)
    assert reported <= binom.ppf(0.999, runs, LEVEL)


@pytest.mark.statistics
def test_without_the_common_level_fifteen_quantities_are_reported_far_too_often():
    """The control: each quantity tested by itself at the level."""
    rng, reported, runs = np.random.default_rng(8), 0, 150
    for seed in range(runs):
        values = rng.normal(size=(160, 15))
        one_by_one = [compare(values[:100, at], values[100:, at], seed) for at in range(15)]
        reported += any(one.differs for one in one_by_one)
    assert reported > binom.ppf(0.999, runs, LEVEL)


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
