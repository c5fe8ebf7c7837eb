"""When a run's nodes join calibration."""

import numpy as np
import pytest

from ringfence.models.calibration.cohort import settled


def test_a_run_settles_when_hardly_any_class_is_new():
    evaluated = np.array([100, 100, 100, 100])
    known = np.array([70, 70, 70, 100])
    before = np.array([70, 68, 67, 20])
    assert settled(evaluated, known, before).tolist() == [True, True, False, True]


def test_a_run_without_a_known_class_does_not_settle():
    assert not settled(np.array([100]), np.array([0]), np.array([0])).any()


def test_counts_that_fell_are_refused():
    with pytest.raises(ValueError, match="fewer known than before"):
        settled(np.array([10]), np.array([3]), np.array([4]))
