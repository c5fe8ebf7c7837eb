"""Two ways to make sets on the same nodes: how far apart their coverages and sizes are.

A node that both cover or both miss says nothing about the difference; what is left are nodes that
one of them covers alone. Intervals are Wald's after half a node was added to each of the four
counts (Agresti and Min 2005), which keeps 95 % where counts are small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """A difference with its 95 % interval."""

    difference: float
    low: float
    high: float


def coverage_difference(known: int, first: int, second: int, both: int) -> PairedDifference | None:
    """Return the coverage of the first minus that of the second; None before a class is known.

    Args:
        known: nodes of known class.
        first: nodes that the first covers.
        second: nodes that the second covers.
        both: nodes that both cover.

    >>> difference = coverage_difference(known=200, first=184, second=176, both=174)
    >>> round(difference.difference, 3), round(difference.low, 3), round(difference.high, 3)
    (0.04, 0.005, 0.074)
    """
    if known == 0:
        return None
    n, alone, other = known + 2, first - both + 0.5, second - both + 0.5
    middle = (alone - other) / n
    reach = NORMAL_95 * math.sqrt(max(0.0, alone + other - (alone - other) ** 2 / n)) / n
    low, high = max(-1.0, middle - reach), min(1.0, middle + reach)
    return PairedDifference((first - second) / known, low, high)


def mean_difference(n: int, total: float, squares: float) -> PairedDifference | None:
    """Return the mean of n paired differences, from their sum and the sum of their squares.

    >>> difference = mean_difference(100, total=-20.0, squares=40.0)
    >>> round(difference.difference, 2), round(difference.low, 2), round(difference.high, 2)
    (-0.2, -0.32, -0.08)
    """
    if n < 2:
        return None
    mean = total / n
    spread = math.sqrt(max(0.0, squares / n - mean**2) * n / (n - 1))
    reach = NORMAL_95 * spread / math.sqrt(n)
    return PairedDifference(mean, mean - reach, mean + reach)
