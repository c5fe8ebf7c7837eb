"""How many sampled nodes notice that coverage fell: against plain sums of the binomial law."""

from math import comb

import numpy as np
import pytest

from ringfence.models.guarantee.sample_size import nodes_to_notice, powers


def probability_of_at_most(most, nodes, share):
    return sum(comb(nodes, k) * share**k * (1 - share) ** (nodes - k) for k in range(most + 1))


def power_by_sums(nodes, promised, fallen_to, tail=0.025):
    most = -1
    while probability_of_at_most(most + 1, nodes, promised) < tail:
        most += 1
    return probability_of_at_most(most, nodes, fallen_to)


@pytest.mark.parametrize("nodes", [1, 7, 28, 29, 30, 100, 252, 361, 362])
def test_the_power_of_a_sample_is_that_of_the_exact_test(nodes):
    computed = powers(np.array([nodes]), 0.9, 0.85)[0]
    assert computed == pytest.approx(power_by_sums(nodes, 0.9, 0.85), abs=1e-12)


def test_the_number_is_the_first_from_which_on_no_sample_is_too_weak():
    needed = nodes_to_notice(0.9, 0.85)
    assert powers(np.array([needed - 1]), 0.9, 0.85)[0] < 0.8
    assert (powers(np.arange(needed, 5_000), 0.9, 0.85) >= 0.8).all()


def test_a_smaller_fall_takes_more_nodes_and_an_impossible_one_is_refused():
    sizes = [nodes_to_notice(0.9, fallen_to) for fallen_to in (0.5, 0.7, 0.8, 0.85, 0.88)]
    assert sizes == sorted(sizes)
    with pytest.raises(ValueError, match="needed"):
        nodes_to_notice(0.9, 0.95)
