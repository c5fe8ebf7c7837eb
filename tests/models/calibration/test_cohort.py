"""When a run's nodes join calibration."""

import numpy as np

from ringfence.models.calibration.cohort import settled, settled_age


def labels(*runs):
    """Places of runs and lags of their classes, from one list of lags per run."""
    of_run = np.repeat(np.arange(len(runs)), [len(lags) for lags in runs])
    return of_run, np.array([lag for lags in runs for lag in lags], np.int64)


def test_a_constant_delay_costs_no_run_of_waiting():
    of_run, lags = labels([2] * 9, [2] * 9, [2] * 9, [2] * 9, [2] * 9, [], [])
    assert settled(7, of_run, lags).tolist() == [True] * 5 + [False] * 2


def test_a_class_that_is_known_early_waits_for_the_others():
    whole, young = [1] + [5] * 9, [1]
    of_run, lags = labels(*[whole] * 6, *[young] * 4)
    assert settled(10, of_run, lags).tolist() == [True] * 6 + [False] * 4


def test_a_few_very_late_classes_hold_nobody_back():
    assert settled_age(*labels([2] * 97 + [300] * 3)) == 2


def test_a_first_run_over_a_backlog_holds_nobody_back():
    backlog = list(range(1, 13)) * 500
    of_run, lags = labels(backlog, *[[2] * 9] * 11)
    assert settled_age(of_run, lags) == 2


def test_a_run_without_a_known_class_does_not_settle():
    of_run, lags = labels([1], [], [1], [1], [1], [1])
    assert settled(6, of_run, lags).tolist() == [True, False, True, True, True, True]


def test_the_first_runs_wait_until_one_is_old_enough_to_tell():
    assert not settled(4, *labels([1], [1], [1])).any()
    assert settled(0, *labels()).tolist() == []


def test_before_any_class_is_known_there_is_no_age():
    assert settled_age(*labels([], [])) == 0
    assert not settled(9, *labels([], [])).any()


def test_young_runs_do_not_hide_that_most_classes_come_later():
    """Of young runs only the early class is known; counted like old ones, they would all settle."""
    of_run, lags = labels([1] + [5] * 9, *[[1]] * 4)
    assert settled(5, of_run, lags).tolist() == [True] + [False] * 4


def test_a_delay_that_grows_is_noticed_though_most_runs_had_a_short_one():
    short, long_, young = [1] * 9, [1] + [10] * 9, [1]
    of_run, lags = labels(*[short] * 100, *[long_] * 40, *[young] * 9)
    assert not settled(149, of_run, lags)[-9:].any()
