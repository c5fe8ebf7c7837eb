"""Weights for calibration nodes whose degrees differ from those of the due nodes.

If classes became known by degree alone (well-connected accounts are investigated first), scores of
calibration nodes are not those of due nodes, but given the degree they are. Weighting calibration
node i by r(d_i), the density of degree among due nodes over that among calibration nodes, makes up
for it (Tibshirani, Barber, Candès, Ramdas 2019):

    p(v, y) = (sum of r(d_i) over s_i <= s(v, y)  +  r(d_v)) / (sum of all r(d_i)  +  r(d_v))

The ratio is estimated from the same nodes by logistic regression on log(1 + degree), linear between
quantiles of both sides (a parabola over-covers by 5 points where classes are known above a certain
degree, bins under-cover by 6 where few calibration nodes are left at one end). So the promise is
approximate, and no stronger than its assumption: labels chosen by the truth itself (easy cases
first) leave no trace in degrees, and no weights can correct for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_RATIO = 20.0
RIDGE = 0.1  # keeps the fit finite where degrees separate the two sides
KNOTS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
NEWTON_STEPS = 25


@dataclass(frozen=True, slots=True)
class ShiftWeights:
    """Density ratios of calibration nodes [n] and due nodes [m], between 1/20 and 20."""

    calibration: Floats
    due: Floats


def shift_weights(calibration_degrees: Ints, due_degrees: Ints) -> ShiftWeights:
    """Return density ratios of degree, due nodes over calibration nodes.

    Args:
        calibration_degrees: degrees of the calibration nodes on the graph as it is now [n].
        due_degrees: degrees of the nodes to evaluate [m].

    Returns:
        ratios; all 1 where one side is empty or all degrees are equal.

    >>> same = shift_weights(np.array([1, 2, 3]), np.array([1, 2, 3]))
    >>> same.calibration.round(6).tolist()
    [1.0, 1.0, 1.0]
    >>> more = shift_weights(np.arange(1, 60), np.arange(40, 99))
    >>> bool(more.calibration[-1] > 1 > more.calibration[0])
    True
    """
    n, m = len(calibration_degrees), len(due_degrees)
    both = np.log1p(np.concatenate([calibration_degrees, due_degrees]).astype(np.float64))
    if n == 0 or m == 0 or np.ptp(both) == 0:
        return ShiftWeights(np.ones(n), np.ones(m))
    design = _design((both - both.mean()) / both.std(), n)
    is_due = np.arange(n + m) >= n
    odds = np.exp(np.clip(design @ _fit(design, is_due.astype(np.float64)), -30.0, 30.0))
    ratio = np.clip(odds * n / m, 1.0 / MAX_RATIO, MAX_RATIO)
    return ShiftWeights(ratio[:n], ratio[n:])


def _design(scaled: Floats, n: int) -> Floats:
    """Columns of a function that is linear between quantiles of the first n and of the rest."""
    sides = [np.quantile(side, KNOTS) for side in (scaled[:n], scaled[n:])]
    hinges = [np.maximum(scaled - knot, 0.0) for knot in np.unique(np.concatenate(sides))]
    return np.stack([np.ones(len(scaled)), scaled, *hinges], axis=1)


def _fit(design: Floats, is_due: Floats) -> Floats:
    """Coefficients of a logistic regression by Newton's method; the intercept is not shrunk."""
    penalty = np.diag([0.0, *[RIDGE] * (design.shape[1] - 1)])
    weights = np.zeros(design.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30.0, 30.0)))
        gradient = design.T @ (is_due - p) - penalty @ weights
        curvature = (design * (p * (1.0 - p))[:, None]).T @ design + penalty
        move = np.linalg.solve(curvature + 1e-9 * np.eye(len(weights)), gradient)
        weights = weights + np.clip(move, -2.0, 2.0)
        if np.abs(move).max() < 1e-8:
            break
    return weights
