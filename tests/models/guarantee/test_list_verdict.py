"""The verdict on a list, against the laws that it is called by."""

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.models.guarantee.list_verdict import RunOfList, judge_list

EMPTY = RunOfList(0, 0, 0)


def whole(wrong, listed):
    """A list of which every node is known."""
    return RunOfList(listed, listed, wrong)


def mean_by_the_old_rule(runs):
    """Red control: no node known counts as an empty list, and an empty list counts at once."""
    counted = [run.wrong / run.known for run in runs if run.known]
    return sum(counted) / (len(counted) + sum(not run.known for run in runs))


def test_the_pooled_verdict_has_the_binomial_p_value():
    runs = [EMPTY, whole(4, 20), EMPTY, EMPTY, whole(5, 10)]
    judged = judge_list(runs, 0.2, pooled=True)
    assert judged.p_value == pytest.approx(binom.sf(8, 30, 0.2))
    assert (judged.pooled, judged.mean_of_runs) == (0.3, pytest.approx((0.2 + 0.5) / 5))


def test_empty_lists_count_as_nothing_wrong_on_average():
    crowded = judge_list([whole(5, 10)] * 40, 0.2, pooled=False)
    thin = judge_list([EMPTY, EMPTY, whole(5, 10)] * 40, 0.2, pooled=False)
    assert (crowded.verdict, thin.verdict) == ("broken", "kept")
    assert thin.mean_of_runs < 0.2 < thin.pooled


def test_nothing_listed_gives_no_verdict():
    assert judge_list([], 0.1, pooled=True).mean_of_runs == 0
    assert judge_list([EMPTY] * 9, 0.1, pooled=False).verdict == "not enough known yet"
    assert judge_list([RunOfList(3, 0, 0)], 0.1, pooled=False).mean_of_runs is None


def test_a_list_of_which_nobody_is_known_is_not_empty():
    """Every fourth list has known nodes, 60 % of them wrong, and no list is empty."""
    runs = [RunOfList(10, 0, 0), RunOfList(10, 0, 0), RunOfList(10, 0, 0), RunOfList(10, 10, 6)]
    judged = judge_list(runs * 20, 0.2, pooled=False)
    assert (judged.verdict, judged.mean_of_runs) == ("broken", pytest.approx(0.6))
    assert mean_by_the_old_rule(runs * 20) == pytest.approx(0.15)


def test_empty_lists_count_no_sooner_than_lists_that_hold_nodes():
    """Half of the lists are empty; classes come after the newest 90 runs."""
    old = [whole(6, 10), EMPTY] * 15
    young = [RunOfList(10, 0, 0), EMPTY] * 45
    judged = judge_list(old + young, 0.2, pooled=False)
    assert judged.mean_of_runs == pytest.approx(0.6 * 15 / 29)
    assert judged == judge_list(old[:-1], 0.2, pooled=False)
    assert mean_by_the_old_rule(old + young) < 0.2 < judged.mean_of_runs


def test_a_run_that_waits_counts_in_nothing_but_whether_it_is_empty():
    waiting = RunOfList(10, 3, 3, waits=True)
    judged = judge_list([waiting, EMPTY, whole(2, 10)], 0.2, pooled=False)
    assert judged.mean_of_runs == pytest.approx(0.2 * 2 / 3)
    assert judged.pooled == 0.2


def lives(rng, runs, known):
    """Runs that list 0 to 12 nodes; shorter lists are wronger; one in five wrong on average."""
    listed = rng.integers(0, 13, runs)
    chance = np.where(listed > 6, 0.1, 0.2 * 13 / 6 - 0.1)
    wrong = rng.binomial(listed, np.where(listed > 0, chance, 0))
    known_wrong, known_right = rng.binomial(wrong, known), rng.binomial(listed - wrong, known)
    rows = zip(listed.tolist(), (known_wrong + known_right).tolist(), known_wrong.tolist(),
               strict=True)  # fmt: skip
    return [RunOfList(*row) for row in rows]


@pytest.mark.parametrize("known", [0.1, 0.3, 0.7, 1.0])
def test_the_mean_is_that_of_all_runs_however_few_nodes_are_known(known):
    """Short lists are seldom known; runs that are stand for them. Counted alike they mislead."""
    runs = lives(np.random.default_rng(1), 20_000, known)
    assert judge_list(runs, 0.2, pooled=False).mean_of_runs == pytest.approx(0.2, abs=0.015)
    if known == 0.1:
        alike = [run.wrong / run.known for run in runs if run.known]
        assert np.mean(alike) * 12 / 13 < 0.17
        assert mean_by_the_old_rule(runs) < 0.1


@pytest.mark.parametrize("pooled", [True, False])
def test_a_list_that_keeps_its_promise_is_hardly_ever_called_broken(pooled):
    rng, broken, reps = np.random.default_rng(0), 0, 2_000
    for _ in range(reps):
        runs = [whole(int(false), 5) for false in rng.binomial(5, 0.2, size=30)]
        broken += judge_list(runs, 0.2, pooled=pooled).verdict == "broken"
    assert broken / reps <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / reps)


@pytest.mark.parametrize("known", [0.1, 0.3, 0.7])
def test_nor_is_one_of_which_few_nodes_are_known(known):
    rng, reps = np.random.default_rng(2), 2_000
    broken = sum(
        judge_list(lives(rng, 60, known), 0.2, pooled=False).verdict == "broken"
        for _ in range(reps)
    )
    assert broken / reps <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / reps)


def test_a_list_of_which_half_is_wrong_is_called_broken():
    assert judge_list([whole(10, 20)] * 5, 0.2, pooled=True).verdict == "broken"
