"""Weights that undo a choice of calibration nodes by class."""

import numpy as np

from ringfence.models.selection.references import fair_weights


def test_references_whose_shares_are_fair_weigh_one():
    classes = np.array([0] * 90 + [1] * 10)
    wrong = np.array([True, False])
    assert (fair_weights(classes, wrong, None) == 1).all()
    assert np.allclose(fair_weights(classes, wrong, np.array([90.0, 10.0])), 1)


def test_weights_give_the_share_of_wrong_nodes_among_all_labelled_ones():
    classes, wrong = np.array([0] * 30 + [1] * 20), np.array([True, False])
    weight = fair_weights(classes, wrong, np.array([900.0, 60.0]))
    share = (1 + weight[classes == 0].sum()) / (1 + weight.sum())
    assert np.isclose(share, 901 / 961)


def test_of_several_wrong_classes_none_weighs_more_than_a_new_node():
    classes, wrong = np.array([0] * 30 + [1] * 20 + [2] * 5), np.array([True, True, False])
    weight = fair_weights(classes, wrong, np.array([300.0, 40.0, 50.0]))
    assert weight[wrong[classes]].max() == 1
    assert np.isclose(weight[0] / weight[30], (300 / 30) / (40 / 20))
