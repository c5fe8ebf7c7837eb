"""The law of coverage for very many nodes, without a number for each count.

`law` sums P(k) over all counts k, which for a year of hourly runs means a million numbers per row
of an audit. Here the same probability comes from some fifty. K of m nodes are covered, each with
the chance X ~ Beta(a, b); given X, P(K <= k) is P(Y >= X) with Y ~ Beta(k + 1, m - k). So

    P(K <= k) = P(X <= Y),

an integral over the sharper of the two densities. On the scale of the log odds that density is
smooth and falls off exponentially on both sides, where the trapezoidal rule is right to about
twelve digits with a step of a third of its spread (compared with `law` in
tests/models/guarantee/test_large_counts.py).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP = 0.35  # in standard deviations of the sharper density, on the scale of the log odds
WIDEST_STEP = 0.2
REACH = 9.0  # standard deviations to each side
FALL = 45.0  # where a side falls off exponentially, up to exp(-45)
MAX_NEWTON_STEPS = 20


def covered_at_most(a: float, b: float, m: int, covered: int) -> float:
    """Return P(K <= covered) of m nodes, K beta-binomial with the odds a : b, both above 0.

    >>> round(covered_at_most(55.0, 6.0, 100_000, 82_000), 4)
    0.0296
    >>> covered_at_most(55.0, 6.0, 100_000, 100_000)
    1.0
    """
    from scipy.special import betainc

    if covered >= m:
        return 1.0
    if covered < 0:
        return 0.0
    shape, count = (a, b), (covered + 1.0, float(m - covered))
    if _spread(*shape) < _spread(*count):  # so many calibration nodes that X is the sharper one
        share, weight = _density(*shape)
        probability = float(weight @ (1.0 - betainc(*count, share)))
    else:
        share, weight = _density(*count)
        probability = float(weight @ betainc(*shape, share))
    return min(1.0, max(0.0, probability))


def fewest_covered(a: float, b: float, m: int, probability: float) -> int:
    """Return the smallest k with P(K <= k) >= probability.

    >>> fewest_covered(55.0, 6.0, 100_000, 0.025) / 100_000 < 0.82
    True
    """
    below, enough = -1, m
    mean = m * a / (a + b)
    spread = math.sqrt(mean * b / (a + b) * (a + b + m) / (a + b + 1.0))
    place = mean + spread * _probit(probability)
    for step in range(MAX_NEWTON_STEPS + 64):
        if enough - below <= 1:
            break
        if step >= MAX_NEWTON_STEPS:
            place = (below + enough) / 2
        k = int(min(max(round(place), below + 1), enough - 1))
        reached = covered_at_most(a, b, m, k)
        if reached >= probability:
            enough = k
        else:
            below = k
        move = (probability - reached) / max(_mass(a, b, m, k), 1e-300)
        place = k + min(max(move, -spread), spread)
        if abs(place - k) < 1:
            place = k - 1 if enough == k else k + 1
    return enough


def _spread(a: float, b: float) -> float:
    """Standard deviation of the log odds of a Beta(a, b), about."""
    return math.sqrt(1.0 / a + 1.0 / b)


def _density(a: float, b: float) -> tuple[Floats, Floats]:
    """Shares on an even grid of log odds, with the weights of a Beta(a, b); they sum to 1."""
    spread, middle = _spread(a, b), math.log(a / b)
    step = min(STEP * spread, WIDEST_STEP)
    reach = REACH * spread + FALL / min(a, b)
    far = step * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1)
    # ln of the density less its peak: a ln(y / y0) + b ln((1 - y) / (1 - y0))
    peak = a / (a + b)
    other = -np.log1p(peak * np.expm1(far))
    weight = np.exp(a * (far + other) + b * other)
    odds = middle + far
    return 1.0 / (1.0 + np.exp(-odds)), weight / weight.sum()


def _mass(a: float, b: float, m: int, k: int) -> float:
    """P(K = k)."""
    from scipy.special import betaln

    choose = -math.log(m + 1.0) - betaln(m - k + 1.0, k + 1.0)
    return float(np.exp(choose + betaln(k + a, m - k + b) - betaln(a, b)))


@lru_cache(maxsize=64)
def _probit(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
