"""What chance alone does to the mean of some sequences: the band that a figure is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringfence.models.conformal.rank import rank
from ringfence.models.guarantee.law import expected_coverage

__all__ = ["Chance", "chance"]

DRAWS = 40_000


@dataclass(frozen=True, slots=True)
class Chance:
    """The mean coverage of ``sequences`` sequences when all is well, in %.

    ``deviation`` is the expected |mean - (1 - alpha)|, ``low`` and ``high`` the 99 % band of the
    signed deviation.
    """

    sequences: int
    expected: float
    deviation: float
    low: float
    high: float


def chance(n: int, m: int, alpha: float, sequences: int, level: float = 0.99) -> Chance:
    """The law of the mean of ``sequences`` independent beta-binomial coverages of m nodes each.

    Simulated with a fixed seed from Beta(n + 1 - l, l) and the binomial. It is exact where all m
    nodes are evaluated at one time; evaluated on arrival, each step has a threshold of its own, the
    coverages of one sequence hang together less, and the band is wider than it need be.
    """
    missed = rank(n, alpha)
    rng = np.random.default_rng(20240507)
    share = rng.beta(n + 1 - missed, missed, size=(DRAWS, sequences))
    mean = (rng.binomial(m, share) / m).mean(axis=1) - (1.0 - alpha)
    low, high = np.quantile(mean, [(1 - level) / 2, (1 + level) / 2])
    return Chance(
        sequences,
        100.0 * expected_coverage(n, alpha),
        100.0 * float(np.abs(mean).mean()),
        100.0 * float(low),
        100.0 * float(high),
    )
