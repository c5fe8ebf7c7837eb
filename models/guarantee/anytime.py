"""A bound on coverage that holds however often it is checked (anytime-valid).

The usual band is valid for one look. Someone who checks daily for years will one day see coverage
below it although all is well. This bound is for repeated checks: when all is well, coverage ever
falls below it with probability at most delta.

When all is well, hits and misses come like draws from Polya's urn (the beta-binomial law, one label
after the other): P(next is covered) = (a + covered so far) / (a + b + known so far), a = n + 1 - l
and b = l. Against it stands the alternative that the chance of being covered is some number below
1 - alpha, each equally likely. The ratio of the two probabilities of all labels so far,

    e(k, m) = 1 / (1 - alpha) * integral from 0 to 1 - alpha of t^k (1 - t)^(m - k) dt
              / (B(a + k, b + m - k) / B(a, b)),

is a martingale with mean 1 when all is well, so P(it ever reaches 1 / delta) <= delta (Ville). It
depends on the counts alone: any order in which classes become known will do that does not look at
whether they were covered. Where misses are labelled first, as by someone who investigates odd
cases, coverage of the known nodes is too low for a while and the bound can be crossed.

A change that comes late hides behind many good runs before it. So the same is computed for the
labels of runs j, j + 1, ... for every j, each held to the share delta / (j (j + 1)) of the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, xlog1py, xlogy

from ringfence.models.guarantee.law import calibration_odds

Counts = Sequence[int] | NDArray[np.int64]

ANYTIME_DELTA = 0.01
ROUNDING = 0.001  # far more than sums of logarithms are off by


@dataclass(frozen=True, slots=True)
class Anytime:
    """Result over all looks: `p_value` <= delta is an alarm; `since` the run it starts at."""

    p_value: float
    since: int


def log_evidence(n: float, known: int, covered: int, alpha: float) -> float:
    """Return ln e(k, m): how much likelier the labels are if coverage is below 1 - alpha.

    >>> round(log_evidence(100, 200, 180, 0.1), 2)
    -2.87
    >>> round(log_evidence(100, 200, 130, 0.1), 1)
    10.8
    """
    return float(_log_evidence(n, np.array([known]), np.array([covered]), alpha)[0])


def _log_evidence(
    n: float, known: NDArray[np.int64], covered: NDArray[np.int64], alpha: float
) -> NDArray[np.float64]:
    a, b = calibration_odds(n, alpha)
    missed = known - covered
    if b <= 0:  # every set is full: a miss is impossible
        return np.where(missed > 0, np.inf, 0.0)
    if a <= 0:
        return np.zeros(len(known))
    with np.errstate(divide="ignore"):
        below = np.log(betainc(covered + 1, missed + 1, 1 - alpha))
    alternative = below + betaln(covered + 1, missed + 1) - math.log(1 - alpha)
    null = betaln(a + covered, b + missed) - betaln(a, b)
    return np.asarray(np.where(known > 0, alternative - null, 0.0))


def _most_evidence(
    n: float, known: NDArray[np.int64], covered: NDArray[np.int64], alpha: float
) -> NDArray[np.float64]:
    """At least ln e(k, m), forty times cheaper: the mean of a probability is at most its maximum.

    Infinite if there is no such bound.
    """
    a, b = calibration_odds(n, alpha)
    if a <= 0 or b <= 0:
        return np.full(len(known), np.inf)
    missed = known - covered
    share = np.minimum(covered / np.maximum(known, 1), 1 - alpha)
    likeliest = xlogy(covered, share) + xlog1py(missed, -share)
    null = betaln(a + covered, b + missed) - betaln(a, b)
    return np.asarray(likeliest - null + ROUNDING)


def anytime_low(n: float, known: int, alpha: float, delta: float = ANYTIME_DELTA) -> float:
    """Return the share of `known` nodes below which coverage never falls, with 1 - delta.

    >>> anytime_low(100, 400, 0.1), anytime_low(1000, 400, 0.1)
    (0.75, 0.825)
    >>> anytime_low(100, 1, 0.1)
    0.0
    """
    goal = -math.log(delta)
    low, high = 0, known  # smallest k that raises no alarm; the evidence falls with k
    while low < high:
        middle = (low + high) // 2
        if log_evidence(n, known, middle, alpha) >= goal:
            low = middle + 1
        else:
            high = middle
    return low / known if known else 0.0


def over_runs(n: float, known: Counts, covered: Counts, alpha: float) -> Anytime:
    """Return the p-value of all runs' labels together, whichever run a change began with.

    `known` and `covered` are those of the runs of one model, oldest first. p is valid at every look
    and for every way of stopping: P(p <= delta at some time) <= delta when all is well.

    >>> over_runs(200, [100] * 6, [90] * 6, 0.1).p_value
    1.0
    >>> late = over_runs(200, [100] * 6, [91, 92, 90, 90, 60, 58], 0.1)
    >>> late.p_value < 0.01, late.since
    (True, 4)
    """
    if not len(known):
        return Anytime(1.0, 0)
    after = [np.cumsum(np.asarray(some)[::-1])[::-1] for some in (known, covered)]
    j = np.arange(len(known))
    price = np.log((j + 1.0) * (j + 2.0))
    may = np.flatnonzero(_most_evidence(n, after[0], after[1], alpha) > price)
    if not len(may):
        return Anytime(1.0, 0)
    evidence = _log_evidence(n, after[0][may], after[1][may], alpha) - price[may]
    best = int(np.argmax(evidence))
    if evidence[best] <= 0:
        return Anytime(1.0, 0)
    return Anytime(float(np.exp(-evidence[best])), int(may[best]))


def bound_over_runs(
    n: float,
    known: Counts,
    covered: Counts,
    alpha: float,
    since: int = 0,
    delta: float = ANYTIME_DELTA,
) -> float:
    """Return the share of all known nodes below which `over_runs` gives p < delta.

    The bound of the runs from `since` on, held to their share of the error, with what was covered
    before added to it. Coverage lies below it exactly where these runs raise the alarm; where
    `since` is the one that `over_runs` names, where any do.

    >>> known, covered = [100] * 6, [91, 92, 90, 90, 60, 58]
    >>> since = over_runs(200, known, covered, 0.1).since
    >>> sum(covered) / 600 < bound_over_runs(200, known, covered, 0.1, since)
    True
    """
    nodes = int(np.sum(known))
    if not nodes:
        return 0.0
    later = int(np.sum(known[since:]))
    price = (since + 1.0) * (since + 2.0)
    needed = anytime_low(n, later, alpha, delta / price) * later
    return (int(np.sum(covered[:since])) + needed) / nodes
