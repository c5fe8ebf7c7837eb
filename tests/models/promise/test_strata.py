"""Strata by group."""

from ringfence.models.promise.strata import group_strata


def test_nodes_of_one_group_share_a_stratum_across_both_sides():
    found = group_strata(["b", "a", "b"], ["a", "b"])
    assert found.calibration[0] == found.calibration[2] == found.due[1]
    assert found.calibration[1] == found.due[0]
    assert found.never_seen == ()


def test_a_group_never_seen_is_named():
    assert group_strata(["a"], ["c", None]).never_seen == (None, "c")


def test_nodes_without_the_property_are_a_group():
    found = group_strata([None, "a"], [None])
    assert found.due[0] == found.calibration[0]
