"""The law of coverage where nodes are judged in strata, such as bands of degree.

Each stratum has calibration nodes of its own, so the number covered in it is beta-binomial by
itself (`law`), and independent of the others. A run's count is their sum: its law is the
convolution of theirs, exactly, for exchangeable scores without ties.

Several runs that share calibration nodes are not independent, and their bands move as the graph
grows. For them there is a bound on the spread: the standard deviation of a mean is at most the mean
of the standard deviations. The number of calibration nodes of one stratum with that spread stands
in for n; everything computed from it is approximate, and errs to the side of too wide a band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.guarantee.law import law_of_covered

Floats = NDArray[np.float64]

MAX_NODES_FOR_EXACT_SUMS = 2_000  # of either part; above, sums go through a Fourier transform


@dataclass(frozen=True, slots=True)
class JudgedNodes:
    """Nodes that one stratum judged: its calibration nodes n, known nodes m, and the level.

    n is an effective sample size where it is not whole; the law is then approximate.
    """

    n: float
    m: int
    level: float


def stratified_law(strata: Sequence[JudgedNodes]) -> Floats:
    """Return P(k nodes covered in all strata together), k = 0 to the number of nodes.

    >>> stratified_law([JudgedNodes(9, 1, 0.1), JudgedNodes(9, 1, 0.1)]).round(3).tolist()
    [0.01, 0.18, 0.81]
    """
    law = np.ones(1)
    for stratum in strata:
        if stratum.m:
            law = _convolve(law, law_of_covered(stratum.n, stratum.m, stratum.level))
    return law


def stratified_band(strata: Sequence[JudgedNodes], level: float = 0.95) -> tuple[float, float]:
    """Return the equal-tailed band of the share covered among all nodes of the strata.

    >>> one, two = JudgedNodes(60, 500, 0.1), JudgedNodes(60, 500, 0.1)
    >>> stratified_band([one, two])
    (0.84, 0.95)
    """
    nodes = sum(stratum.m for stratum in strata)
    if nodes == 0:
        return 0.0, 1.0
    cumulative = np.cumsum(stratified_law(strata))
    tail = (1.0 - level) / 2.0
    low, high = np.searchsorted(cumulative, [tail, 1.0 - tail])
    return float(low) / nodes, float(min(high, nodes)) / nodes


def stratified_p_value(strata: Sequence[JudgedNodes], covered: int) -> float:
    """Return P(so few or fewer covered when all is well).

    >>> round(stratified_p_value([JudgedNodes(9, 1, 0.1), JudgedNodes(9, 1, 0.1)], 1), 3)
    0.19
    """
    nodes = sum(stratum.m for stratum in strata)
    if not 0 <= covered <= nodes:
        raise ValueError(f"{covered} of {nodes} nodes covered; needed: a number from 0 to {nodes}")
    return float(np.clip(np.sum(stratified_law(strata)[: covered + 1]), 0.0, 1.0))


def equivalent_size(runs: Sequence[Sequence[JudgedNodes]]) -> float:
    """Return the n of one stratum with the spread that coverage over the runs has at most.

    With weights w_s = m_s / m inside a run, coverage given the calibration nodes has the variance
    sum of w_s^2 v / (n_s + 2), v = level (1 - level); over runs the standard deviations are
    averaged. One stratum gives its own n back.

    >>> equivalent_size([[JudgedNodes(60, 100, 0.1)], [JudgedNodes(60, 20, 0.1)]])
    60.0
    >>> round(equivalent_size([[JudgedNodes(60, 50, 0.1), JudgedNodes(60, 50, 0.1)]]))
    122
    """
    total = sum(stratum.m for run in runs for stratum in run)
    if total == 0:
        return min((stratum.n for run in runs for stratum in run), default=0.0)
    if len({stratum.n for run in runs for stratum in run if stratum.m}) == 1 and all(
        sum(stratum.m > 0 for stratum in run) <= 1 for run in runs
    ):
        return float(next(stratum.n for run in runs for stratum in run if stratum.m))
    spread = 0.0
    for run in runs:
        nodes = sum(stratum.m for stratum in run)
        if nodes:
            variance = sum((stratum.m / nodes) ** 2 / (stratum.n + 2.0) for stratum in run)
            spread += nodes / total * math.sqrt(variance)
    return max(0.0, 1.0 / spread**2 - 2.0)


def _convolve(stratum: Floats, other: Floats) -> Floats:
    if min(len(stratum), len(other)) <= MAX_NODES_FOR_EXACT_SUMS:
        return np.convolve(stratum, other)
    from scipy.signal import fftconvolve  # brings scipy.stats: two CPU seconds

    return np.clip(fftconvolve(stratum, other), 0.0, 1.0)
