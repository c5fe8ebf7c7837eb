"""The adaptive level: its recursion, and its bound against every sequence hypothesis can find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.calibration.adaptive_level import AdaptiveLevel, miss_rate_bound


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
