"""The adaptive level: its recursion, and its bound against every sequence hypothesis can find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.calibration.adaptive_level import (
    AdaptiveLevel,
    largest_stable_step,
    miss_rate_bound,
)


def miss_rate(level, wish):
    """What an adversary may answer: full sets miss nobody, empty sets everybody."""
    if level <= 0:
        return 0.0
    return 1.0 if level >= 1 else wish


def play(alpha, step, wishes, delays, clip=False):
    """Play runs whose answers come `delays` runs later, out of order too.

    Returns the rates that were taken in, and the largest number of earlier runs that waited.
    """
    level, open_, waited = AdaptiveLevel.start(alpha, step), [], 0
    taken = []
    for t, (wish, delay) in enumerate(zip(wishes, delays, strict=True)):
        waited = max(waited, len(open_))
        open_.append((t + delay, miss_rate(level.level, wish)))
        answered = [rate for due, rate in open_ if due <= t]
        open_ = [(due, rate) for due, rate in open_ if due > t]
        level = level.after(answered)
        taken += answered
        if clip:
            level = AdaptiveLevel(alpha, step, level.in_force, level.answered, level.misses)
    return level, taken, waited


@settings(max_examples=300, deadline=None)
@given(
    alpha=st.floats(0.01, 0.99),
    step=st.floats(0.001, 2.0),
    runs=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=120),
)
def test_the_mean_miss_rate_keeps_its_bound_whatever_happens(alpha, step, runs):
    level, taken, waited = play(alpha, step, [r[0] for r in runs], [r[1] for r in runs])
    if taken:
        assert level.mean_miss_rate == pytest.approx(np.mean(taken))
        bound = miss_rate_bound(alpha, step, len(taken), waited)
        assert abs(np.mean(taken) - alpha) <= bound + 1e-9
    room = step * (waited + 1)
    assert -(1 - alpha) * room - 1e-9 < level.level < 1 + alpha * room + 1e-9


@pytest.mark.parametrize("wish", [0.0, 1.0])
@pytest.mark.parametrize("delay", [0, 7])
def test_a_constant_adversary_is_held_to_the_bound(wish, delay):
    level, taken, waited = play(0.1, 0.05, [wish] * 2_000, [delay] * 2_000)
    assert waited == delay
    assert abs(np.mean(taken) - 0.1) <= level.bound(delay) < 0.02


def test_clipping_inside_the_recursion_would_break_the_bound():
    """Negative control: misses beyond 0 and 1 that are forgotten add up."""
    wishes = [1.0] * 60
    delays = [7] * 60
    _, kept, waited = play(0.1, 1.0, wishes * 40, delays * 40)
    _, clipped, _ = play(0.1, 1.0, wishes * 40, delays * 40, clip=True)
    bound = miss_rate_bound(0.1, 1.0, len(kept), waited)
    assert abs(np.mean(kept) - 0.1) <= bound
    assert abs(np.mean(clipped) - 0.1) > bound


def test_sets_use_the_level_inside_its_range():
    assert AdaptiveLevel(0.1, 0.05, -0.3).in_force == 0.0
    assert AdaptiveLevel(0.1, 0.05, 1.2).in_force == 1.0


def test_nothing_answered_has_no_mean_and_the_whole_bound():
    start = AdaptiveLevel.start(0.1, 0.05)
    assert start.mean_miss_rate is None
    assert start.bound(3) == 1.0
    assert start.after([]) == start


@pytest.mark.parametrize(("alpha", "step"), [(0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, -1.0)])
def test_a_start_that_makes_no_sense_is_refused(alpha, step):
    with pytest.raises(ValueError, match="needed"):
        AdaptiveLevel.start(alpha, step)


def test_a_miss_rate_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="shares between 0 and 1"):
        AdaptiveLevel.start(0.1, 0.05).after([1.5])


def play_p_values(step, p_of_run, delays, rule="today", alpha=0.1, at_once=False):
    """Levels that runs use whose p-values are given and whose classes come `delays` runs later.

    With `at_once` all runs that are answered together are judged at one level: a control.
    """
    level, used = AdaptiveLevel.start(alpha, step), []
    for t in range(len(p_of_run)):
        answered = [s for s in range(t) if s + delays[s] == t]
        if rule == "then":
            level = level.after([np.mean(p_of_run[s] <= used[s]) for s in answered])
        elif at_once:
            level = level.after([np.mean(p_of_run[s] <= level.level) for s in answered])
        else:
            level = level.after_runs([p_of_run[s] for s in answered])
        used.append(level.level)
    return level, np.array(used)


def uniform_runs(runs, nodes=100, seed=1):
    return list(np.random.default_rng(seed).random((runs, nodes)))


@settings(max_examples=200, deadline=None)
@given(
    alpha=st.floats(0.01, 0.99),
    step=st.floats(0.001, 2.0),
    runs=st.lists(
        st.tuples(st.lists(st.floats(1e-6, 1.0), max_size=4), st.integers(1, 40)), max_size=80
    ),
)
def test_judged_today_keeps_a_bound_without_the_delay(alpha, step, runs):
    p_of_run = [np.array(p) for p, _ in runs]
    level, used = play_p_values(step, p_of_run, [delay for _, delay in runs], alpha=alpha)
    if level.answered:
        assert abs(level.mean_miss_rate - alpha) <= level.bound() + 1e-9
    assert all(-(1 - alpha) * step - 1e-9 < a < 1 + alpha * step + 1e-9 for a in used)


@pytest.mark.parametrize("delay", [1, 7, 45, 90])
def test_levels_judged_today_are_those_of_immediate_answers_used_later(delay):
    p_of_run = uniform_runs(250)
    _, at_once = play_p_values(0.05, p_of_run, [1] * 250)
    _, late = play_p_values(0.05, p_of_run, [delay] * 250)
    assert (late[delay - 1 :] == at_once[: 250 - delay + 1]).all()
    assert (late[: delay - 1] == 0.1).all()


@pytest.mark.parametrize("delay", [45, 90])
def test_late_classes_swing_the_level_of_then_and_not_that_of_today(delay):
    p_of_run = uniform_runs(600)
    assert largest_stable_step(delay) < 0.05 < largest_stable_step(30)
    _, then = play_p_values(0.05, p_of_run, [delay] * 600, "then")
    _, today = play_p_values(0.05, p_of_run, [delay] * 600)
    assert np.mean(then[300:] <= 0) > 0.1  # the negative control: full sets in a quiet world
    assert 0.08 < today[300:].min() < today[300:].max() < 0.12


def test_a_month_of_runs_that_is_answered_at_once_is_taken_in_run_by_run():
    p_of_run = uniform_runs(600)
    delays = [60 - t % 60 for t in range(600)]
    _, today = play_p_values(0.05, p_of_run, delays)
    _, at_once = play_p_values(0.05, p_of_run, delays, at_once=True)
    assert 0.08 < today.min() < today.max() < 0.12
    assert np.mean(at_once[300:] <= 0) > 0.1  # the negative control: 60 steps by one judgement


def test_a_run_without_known_nodes_answers_nothing():
    start = AdaptiveLevel.start(0.1, 0.05)
    assert start.after_runs([np.array([])]) == start
