"""The weights of the rules, and what they do to coverage."""

import numpy as np
import pytest
import torch

from ringfence.models.conformal.sets import p_values, threshold
from ringfence.models.conformal.weights import (
    drift_weights,
    edge_weights,
    node_weights,
    with_drift,
)


def test_node_weights_are_no_weights():
    known = np.random.default_rng(0).normal(size=40)
    assert np.array_equal(threshold(known, 0.1, node_weights(40)), threshold(known, 0.1))
    assert np.array_equal(p_values(known, known, node_weights(40)), p_values(known, known))


def test_edge_weights_are_one_over_the_degree():
    assert edge_weights(torch.tensor([1, 3, 10])).tolist() == [1.0, 1 / 3, 0.1]
    with pytest.raises(ValueError, match="isolated"):
        edge_weights([1, 0])


def test_drift_weights_halve_with_each_half_life_and_stay_in_the_unit_interval():
    weights = drift_weights(np.array([0.0, 10.0, 20.0, 1e9]), half_life=10.0)
    assert weights.tolist() == [1.0, 0.5, 0.25, 0.0]
    with pytest.raises(ValueError, match="at least 0"):
        drift_weights([-1.0], half_life=10.0)
    with pytest.raises(ValueError, match="above 0"):
        drift_weights([1.0], half_life=0.0)


def test_drift_multiplies_either_rule():
    edge, drift = edge_weights([2, 4]), drift_weights([0.0, 10.0], half_life=10.0)
    assert with_drift(edge, drift).tolist() == [0.5, 0.125]
    assert np.array_equal(with_drift(node_weights(2), drift), drift)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        with_drift(edge, [1.0, 2.0])
    with pytest.raises(ValueError, match="as many"):
        with_drift(edge, [1.0])


def degree_biased(rng, n):
    """Draw a calibration node as the end of an edge: in proportion to its degree."""
    share = 1.0 / np.arange(1, 41)  # degrees 1..40 among all nodes
    degrees = rng.choice(np.arange(1, 41), size=n, p=share * np.arange(1, 41) / 40)
    target = rng.choice(np.arange(1, 41), p=share / share.sum())
    return degrees, target


def score(rng, degrees):
    """Draw scores that are higher for nodes of higher degree."""
    return rng.normal(size=np.shape(degrees)) + np.log(degrees)


@pytest.mark.parametrize("own_weight", [False, True])
def test_edge_weights_repair_what_degree_biased_calibration_breaks(own_weight):
    rng = np.random.default_rng(0)
    weighted = plain = printed = 0
    draws, n = 4000, 60
    for _ in range(draws):
        degrees, target = degree_biased(rng, n)
        known, test = score(rng, degrees), score(rng, target)
        weights = edge_weights(degrees)
        own = 1.0 / target if own_weight else 1.0
        weighted += bool(test >= threshold(known, 0.1, weights, own))
        plain += bool(test >= threshold(known, 0.1))
        order = np.argsort(known)
        share = np.cumsum(weights[order]) / (weights.sum().item() + own)
        printed += bool(test >= known[order][min(np.searchsorted(share, 0.1), n - 1)])
    error = 3 * np.sqrt(0.09 / draws)
    assert weighted / draws > 0.9 - error
    assert plain / draws < 0.8  # the controls: no weights, and the printed rank
    assert printed < weighted


@pytest.mark.statistics
def test_the_test_weight_counts_as_mass_at_minus_infinity_in_the_long_run():
    rng = np.random.default_rng(1)
    draws, n, covered, printed = 30_000, 25, 0, 0
    for _ in range(draws):
        degrees, target = degree_biased(rng, n)
        known, test = score(rng, degrees), score(rng, target)
        weights, own = 1.0 / degrees, 1.0 / target
        covered += bool(test >= threshold(known, 0.1, weights, own))
        order = np.argsort(known)
        share = np.cumsum(weights[order]) / (weights.sum() + own)
        printed += bool(test >= known[order][min(np.searchsorted(share, 0.1), n - 1)])
    error = 4 * np.sqrt(0.09 / draws)
    assert covered / draws > 0.9 - error
    assert printed / draws < 0.9 - error
