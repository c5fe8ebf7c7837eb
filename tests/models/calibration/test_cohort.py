"""When a run's nodes join calibration."""

import numpy as np

from ringfence.models.calibration.cohort import settled, settled_age


def test_a_constant_delay_costs_no_run_of_waiting():
    lags = np.full(100, 2)
    assert settled(np.array([5, 2, 1]), np.array([9, 9, 9]), lags).tolist() == [True, True, False]


def test_a_class_that_is_known_early_waits_for_the_others():
    lags = np.concatenate([np.full(10, 1), np.full(90, 5)])
    ready = settled(np.array([6, 5, 4, 2]), np.array([100, 100, 10, 10]), lags)
    assert ready.tolist() == [True, True, False, False]


def test_a_few_very_late_classes_hold_nobody_back():
    lags = np.concatenate([np.full(97, 2), np.full(3, 300)])
    assert settled_age(lags) == 2


def test_a_run_without_a_known_class_does_not_settle():
    assert not settled(np.array([9]), np.array([0]), np.array([1, 1])).any()


def test_before_any_class_is_known_there_is_no_age():
    assert settled_age(np.empty(0, np.int64)) == 0


def test_the_first_runs_wait_until_one_is_old_enough_to_tell():
    assert not settled(np.array([4, 3, 2, 1]), np.full(4, 7), np.full(28, 1)).any()
    assert settled(np.array([]), np.array([]), np.empty(0, np.int64)).tolist() == []
