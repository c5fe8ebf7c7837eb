"""The verdict on a list, against the laws that it is called by."""

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.models.guarantee.list_verdict import judge_list


def test_the_pooled_verdict_has_the_binomial_p_value():
    judged = judge_list([4, 5], [20, 10], 3, 0.2, pooled=True)
    assert judged.p_value == pytest.approx(binom.sf(8, 30, 0.2))
    assert (judged.pooled, judged.mean_of_runs) == (0.3, (0.2 + 0.5) / 5)


def test_empty_lists_count_as_nothing_wrong_on_average():
    crowded = judge_list([5] * 40, [10] * 40, 0, 0.2, pooled=False)
    thin = judge_list([5] * 40, [10] * 40, 80, 0.2, pooled=False)
    assert (crowded.verdict, thin.verdict) == ("broken", "kept")
    assert thin.mean_of_runs < 0.2 < thin.pooled


def test_nothing_listed_gives_no_verdict():
    assert judge_list([], [], 0, 0.1, pooled=True).mean_of_runs is None
    assert judge_list([], [], 9, 0.1, pooled=False).verdict == "not enough known yet"


@pytest.mark.parametrize("pooled", [True, False])
def test_a_list_that_keeps_its_promise_is_hardly_ever_called_broken(pooled):
    rng, broken, reps = np.random.default_rng(0), 0, 2_000
    for _ in range(reps):
        false = rng.binomial(5, 0.2, size=30)
        judged = judge_list(false.tolist(), [5] * 30, 0, 0.2, pooled=pooled)
        broken += judged.verdict == "broken"
    assert broken / reps <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / reps)


def test_a_list_of_which_half_is_wrong_is_called_broken():
    assert judge_list([10] * 5, [20] * 5, 0, 0.2, pooled=True).verdict == "broken"
