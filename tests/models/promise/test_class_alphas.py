"""Shares per class, and classes that can't be left out."""

import numpy as np
import pytest

from ringfence.models.promise.class_alphas import UnknownClass, class_alphas, classes_in_every_set


def test_a_class_without_a_share_of_its_own_has_the_common_one():
    assert class_alphas(("a", "b", "c"), 0.1, {"b": 0.02}).tolist() == [0.1, 0.02, 0.1]


def test_a_share_for_an_unknown_class_is_refused_by_name():
    with pytest.raises(UnknownClass, match=r"'mole'.*'mule'"):
        class_alphas(("mule", "normal"), 0.1, {"mole": 0.05})


def test_too_few_calibration_nodes_put_a_class_into_every_set():
    counts = np.array([0, 18, 19, 100])
    alphas = np.array([0.1, 0.05, 0.05, 0.1])
    assert classes_in_every_set(counts, alphas).tolist() == [True, True, False, False]
