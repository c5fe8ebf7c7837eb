"""Density ratios by degree: what they mend, and what they can't."""

import numpy as np
import pytest

from ringfence.models.calibration.shift_weights import MAX_RATIO, shift_weights


def weighted_coverage(calibration, due, score):
    """Coverage at 90 % with density-ratio weights, and without."""
    weights = shift_weights(calibration, due)
    known, new = score(calibration), score(due)
    order = np.argsort(known)
    mass = np.concatenate([[0.0], np.cumsum(weights.calibration[order])])
    below = mass[np.searchsorted(known[order], new, side="right")]
    p = (below + weights.due) / (mass[-1] + weights.due)
    plain = (1 + np.searchsorted(known[order], new, side="right")) / (len(known) + 1)
    return (p > 0.1).mean(), (plain > 0.1).mean()


def test_nodes_labelled_by_degree_are_mended():
    rng = np.random.default_rng(3)
    degrees = rng.geometric(0.1, 20_000)
    labelled = rng.random(20_000) < np.where(degrees > 12, 0.5, 0.05)

    def score(d):
        return np.log(d) + rng.normal(0, 0.3, len(d))

    mended, plain = weighted_coverage(degrees[labelled], degrees[~labelled], score)
    assert plain < 0.85 < 0.88 < mended < 0.93


def test_labels_chosen_by_the_score_itself_are_not_mended():
    """Negative control: easy cases first leaves no trace in degrees."""
    rng = np.random.default_rng(4)
    degrees, scores = rng.geometric(0.1, 20_000), rng.random(20_000)
    labelled = rng.random(20_000) < np.where(scores > 0.5, 0.5, 0.1)
    weights = shift_weights(degrees[labelled], degrees[~labelled])
    assert weights.calibration == pytest.approx(1.0, abs=0.25)
    assert (scores[~labelled] > np.quantile(scores[labelled], 0.1)).mean() < 0.85


def test_ratios_stay_in_their_limits_where_degrees_do_not_overlap():
    weights = shift_weights(np.full(200, 1_000), np.ones(200, np.int64))
    assert np.isfinite(weights.calibration).all()
    assert weights.due.max() <= MAX_RATIO
    assert weights.calibration.min() >= 1 / MAX_RATIO


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0)])
def test_an_empty_side_gives_ones(n, m):
    weights = shift_weights(np.ones(n, np.int64), np.ones(m, np.int64))
    assert weights.calibration.tolist() == [1.0] * n
    assert weights.due.tolist() == [1.0] * m


def test_equal_laws_give_ratios_near_one():
    rng = np.random.default_rng(5)
    weights = shift_weights(rng.geometric(0.2, 3_000), rng.geometric(0.2, 3_000))
    assert np.quantile(np.abs(weights.calibration - 1.0), 0.95) < 0.35
