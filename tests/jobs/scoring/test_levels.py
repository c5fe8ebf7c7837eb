"""Levels of runs: alpha itself, or an adaptive one that goes on from the last run's record."""

import numpy as np
import pytest

from ringfence.jobs.scoring.levels import LevelPlan, describe_levels, level_used, next_levels
from ringfence.models.promise.class_alphas import UnknownClass

CLASSES = ("mule", "normal")


def plan(adapt=True, per_class=False, own=None, alphas=(0.1,), step=0.05, rule="then"):
    return LevelPlan(alphas, own or {}, per_class, adapt, step, rule)


def known(run, label, p_true, count):
    p = (p_true, 0.5) if label == "mule" else (0.5, p_true)
    return [(run, label, p)] * count


def test_without_adapting_the_levels_are_the_alphas():
    levels = next_levels(plan(adapt=False, alphas=(0.1, 0.2)), CLASSES, None, {}, [], 0)
    assert levels.used.tolist() == [[0.1, 0.1], [0.2, 0.2]]
    assert levels.record == {}


def test_single_classes_have_their_own_alpha():
    levels = next_levels(plan(False, True, {"mule": 0.05}), CLASSES, None, {}, [], 0)
    assert levels.used.tolist() == [[0.05, 0.1]]


def test_a_run_with_misses_lowers_the_level_and_the_next_run_goes_on_from_there():
    first = {"used": [0.1]}
    nodes = known(1, "normal", 0.05, 3) + known(1, "mule", 0.9, 7)
    once = next_levels(plan(), CLASSES, first, {1: first}, nodes, 2)
    assert once.used[0] == pytest.approx([0.09, 0.09])
    assert once.record["answered"] == [{"run": 1, "known": 10, "missed": [3]}]
    again = next_levels(plan(), CLASSES, once.record, {}, [], 0)
    assert again.used[0] == pytest.approx([0.09, 0.09])
    assert again.record["adaptive"][0]["waiting"] == 2


def test_misses_count_at_the_level_that_their_run_used():
    used = {"used": [0.02]}
    nodes = known(1, "normal", 0.05, 10)
    assert next_levels(plan(), CLASSES, used, {1: used}, nodes, 0).used[0, 0] > 0.1


def test_each_class_has_its_own_level_under_its_own_promise():
    record = {"used": [{"mule": 0.05, "normal": 0.1}]}
    nodes = known(1, "mule", 0.01, 4) + known(1, "normal", 0.9, 40)
    levels = next_levels(
        plan(per_class=True, own={"mule": 0.05}), CLASSES, None, {1: record}, nodes, 0
    )
    assert levels.used[0] == pytest.approx([0.05 - 0.05 * 0.95, 0.1 + 0.05 * 0.1])
    assert {one["class"]: one["answered"] for one in levels.record["adaptive"]} == {
        "mule": 1,
        "normal": 1,
    }


def test_a_class_without_a_known_node_is_not_answered():
    levels = next_levels(
        plan(per_class=True), CLASSES, None, {1: {}}, known(1, "normal", 0.9, 5), 0
    )
    assert [one["answered"] for one in levels.record["adaptive"]] == [0, 1]


def test_nodes_of_a_class_that_the_model_never_saw_move_nothing():
    nodes = [(1, "new class", (0.5, 0.5))] * 9 + known(1, "normal", 0.9, 1)
    levels = next_levels(plan(), CLASSES, None, {1: {}}, nodes, 0)
    assert levels.used[0, 0] == pytest.approx(0.105)


def test_the_state_keeps_a_level_beyond_its_range_and_sets_use_it_inside():
    record = {"adaptive": [{"alpha": 0.1, "class": "", "step": 0.05, "level": -0.2,
                            "answered": 9, "misses": 8.0, "waiting": 1}]}  # fmt: skip
    levels = next_levels(plan(), CLASSES, record, {}, [], 0)
    assert levels.used[0, 0] == 0.0
    assert levels.record["adaptive"][0]["level"] == -0.2


def test_another_step_or_alpha_starts_anew():
    record = {"adaptive": [{"alpha": 0.1, "class": "", "step": 0.05, "level": 0.01,
                            "answered": 9, "misses": 8.0, "waiting": 1}]}  # fmt: skip
    assert next_levels(plan(step=0.1), CLASSES, record, {}, [], 0).used[0, 0] == 0.1
    assert next_levels(plan(alphas=(0.2,)), CLASSES, record, {}, [], 0).used[0, 0] == 0.2


def test_an_alpha_for_an_unknown_class_is_refused():
    with pytest.raises(UnknownClass):
        next_levels(plan(own={"mole": 0.1}), CLASSES, None, {}, [], 0)


def test_a_run_of_an_older_version_used_its_alpha():
    assert level_used(None, 0, 0.1, "mule") == 0.1
    assert np.isclose(level_used({"used": [0.3]}, 1, 0.2, ""), 0.2)


def test_misses_count_at_the_level_of_today_where_the_version_says_so():
    used = {"used": [0.02]}  # covered by its set, missed at today's .1
    nodes = known(1, "normal", 0.05, 10)
    levels = next_levels(plan(rule="today"), CLASSES, used, {1: used}, nodes, 0)
    assert levels.used[0, 0] == pytest.approx(0.1 - 0.05 * 0.9)
    (state,) = levels.record["adaptive"]
    assert (state["rule"], state["misses"], state["missed_then"]) == ("today", 1.0, 0.0)
    assert levels.record["answered"] == [{"run": 1, "known": 10, "missed": [0]}]


def test_runs_that_are_answered_together_are_judged_one_after_the_other():
    nodes = known(2, "normal", 0.095, 1) + known(1, "normal", 0.05, 1)
    levels = next_levels(plan(rule="today"), CLASSES, None, {2: {}, 1: {}}, nodes, 0)
    assert levels.used[0, 0] == pytest.approx(0.1 - 0.05 * 0.9 + 0.05 * 0.1)  # run 1 came first


def test_each_class_is_judged_at_its_own_level_of_today():
    nodes = known(1, "mule", 0.04, 4) + known(1, "normal", 0.9, 40)
    levels = next_levels(
        plan(per_class=True, own={"mule": 0.05}, rule="today"), CLASSES, None, {1: {}}, nodes, 0
    )
    assert levels.used[0] == pytest.approx([0.05 - 0.05 * 0.95, 0.1 + 0.05 * 0.1])


def test_another_rule_starts_anew_and_states_without_a_rule_are_of_the_first_one():
    old = {"alpha": 0.1, "class": "", "step": 0.05, "level": 0.01, "answered": 9, "misses": 8.0,
           "waiting": 1}  # fmt: skip
    assert (
        next_levels(plan(rule="today"), CLASSES, {"adaptive": [old]}, {}, [], 0).used[0, 0] == 0.1
    )
    same = next_levels(plan(), CLASSES, {"adaptive": [old]}, {}, [], 0)
    assert same.record["adaptive"] == [old]


def note(answered, waiting=0, **state):
    levels = next_levels(plan(), CLASSES, None, {}, [], 0)
    base = {"alpha": 0.1, "class": "", "step": 0.05, "level": 0.09, "answered": answered,
            "misses": 0.1 * answered, "waiting": waiting} | state  # fmt: skip
    levels.record["adaptive"][:] = [base]
    return describe_levels(levels)[0]


def test_a_bound_that_says_nothing_is_not_printed_as_one():
    assert note(0).endswith("no run is answered yet")
    assert note(10, 45).endswith("nothing is proved of this mean yet")
    assert "100.0 points" not in note(10, 45)
    assert "useless" in note(365, 31)
    late = note(365, 31, rule="today", missed_then=30.0)
    assert "8.2 % of their known nodes" in late
    assert late.endswith("proved of the latter mean: within 5.2 points of 10 %")
