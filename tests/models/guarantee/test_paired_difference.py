"""The interval of a difference of coverages holds the true one about as often as it says."""

import math

import pytest
from scipy.stats import multinomial

from ringfence.models.guarantee.paired_difference import NORMAL_95, coverage_difference

ONE_ALONE = ((0.02, 0.02), (0.1, 0.02), (0.05, 0.05), (0.2, 0.05), (0.02, 0.0))


def share_held(nodes, first_alone, second_alone, interval):
    """Probability that the interval holds the true difference: summed over all counts."""
    law = multinomial(nodes, [first_alone, second_alone, 1 - first_alone - second_alone])
    held = 0.0
    for first in range(nodes + 1):
        for second in range(nodes + 1 - first):
            low, high = interval(nodes, first, second)
            if low <= first_alone - second_alone <= high:
                held += law.pmf([first, second, nodes - first - second])
    return held


def of_the_product(nodes, first, second):
    difference = coverage_difference(nodes, first, second, 0)
    return difference.low, difference.high


def plain_wald(nodes, first, second):
    """The control: without half a node more in each count."""
    spread = NORMAL_95 * math.sqrt(first + second - (first - second) ** 2 / nodes) / nodes
    return (first - second) / nodes - spread, (first - second) / nodes + spread


@pytest.mark.parametrize("nodes", [20, 60])
@pytest.mark.parametrize(("first_alone", "second_alone"), ONE_ALONE)
def test_the_interval_holds_the_true_difference_about_as_often_as_it_says(
    nodes, first_alone, second_alone
):
    assert share_held(nodes, first_alone, second_alone, of_the_product) > 0.93


def test_without_the_added_counts_it_would_not():
    held = [share_held(20, first, second, plain_wald) for first, second in ONE_ALONE]
    assert min(held) < 0.8


def test_before_a_class_is_known_there_is_no_difference():
    assert coverage_difference(0, 0, 0, 0) is None
