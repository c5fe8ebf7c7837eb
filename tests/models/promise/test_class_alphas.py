"""Shares per class, classes that can't be left out, and what a rare class gives to calibration."""

import numpy as np
import pytest

from ringfence.models.guarantee.law import smallest_n
from ringfence.models.promise.class_alphas import (
    MAX_SHARE,
    UnknownClass,
    class_alphas,
    class_share,
    classes_in_every_set,
)


def test_a_class_without_a_share_of_its_own_has_the_common_one():
    assert class_alphas(("a", "b", "c"), 0.1, {"b": 0.02}).tolist() == [0.1, 0.02, 0.1]


def test_a_share_for_an_unknown_class_is_refused_by_name():
    with pytest.raises(UnknownClass, match=r"'mole'.*'mule'"):
        class_alphas(("mule", "normal"), 0.1, {"mole": 0.05})


def test_too_few_calibration_nodes_put_a_class_into_every_set():
    counts = np.array([0, 18, 19, 100])
    alphas = np.array([0.1, 0.05, 0.05, 0.1])
    assert classes_in_every_set(counts, alphas).tolist() == [True, True, False, False]


def test_a_common_class_keeps_the_configured_share():
    assert class_share(5_000, 0.1, 0.25).share == 0.25


def test_a_rare_class_gets_more_and_never_more_than_the_network_can_spare():
    assert 0.25 < class_share(100, 0.1, 0.25).share < MAX_SHARE
    assert class_share(12, 0.1, 0.25).share == MAX_SHARE


@pytest.mark.parametrize("labelled", [0, 1, 5, 14, 15, 16, 40])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_missing_is_how_many_labelled_nodes_make_the_promise_possible(labelled, alpha):
    found = class_share(labelled, alpha, 0.2)
    enough = class_share(labelled + found.missing, alpha, 0.2)
    assert enough.missing == 0
    assert enough.expected >= smallest_n(alpha) - 1e-9
    if found.missing:
        assert class_share(labelled + found.missing - 1, alpha, 0.2).expected < smallest_n(alpha)
