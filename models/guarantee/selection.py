"""Compares nodes whose class became known with those whose class did not (selection bias).

Coverage is counted among known classes. If classes become known for the easy nodes alone (small
sets, many neighbours), a coverage of 95 % proves little about the rest. What can be compared are
the things that are known of all evaluated nodes: degree, size of the set, p-value of the likeliest
class. The measure is the standardised difference of means,

    d = (mean of known - mean of unknown) / sqrt((variance of known + variance of unknown) / 2),

which does not grow with the number of nodes: |d| below 0.1 is small, above 0.25 a biased sample
(the limits used for matched samples in medicine: Austin 2009; Rubin 2001). Nodes are compared
within runs: classes of old runs are known more often, so that pooled means would mix what changed
over time with which nodes were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SMALL_DIFFERENCE = 0.1
LARGE_DIFFERENCE = 0.25
MIN_NODES_PER_SIDE = 20


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of squares of one quantity in one group."""

    count: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """The mean."""
        return self.total / self.count

    @property
    def variance(self) -> float:
        """The variance, at least 0 whatever rounding did."""
        return max(0.0, self.squares / self.count - self.mean**2)


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """One quantity, known against unknown; `d` is the standardised difference of means."""

    name: str
    known: float
    unknown: float
    d: float


class WithinRuns:
    """The difference of one quantity over runs, available after each of them."""

    __slots__ = ("_counts", "_means", "_name", "_squares", "_weight")

    def __init__(self, name: str) -> None:
        self._name = name
        self._weight = ExactSum()
        self._means, self._squares = (ExactSum(), ExactSum()), (ExactSum(), ExactSum())
        self._counts = [0, 0]

    def add(self, known: Moments, unknown: Moments) -> None:
        """Add a run; one with only known or only unknown nodes compares nothing."""
        if not (known.count and unknown.count):
            return
        weight = known.count * unknown.count / (known.count + unknown.count)
        self._weight.add(weight)
        for place, side in enumerate((known, unknown)):
            self._means[place].add(weight * side.mean)
            self._squares[place].add(side.count * side.variance)
            self._counts[place] += side.count

    @property
    def difference(self) -> MeanDifference | None:
        """How far both sides are apart in the runs so far; None if no run has both."""
        if not all(self._counts):
            return None
        total = self._weight.value
        known, unknown = (mean.value / total for mean in self._means)
        variances = [
            squares.value / count
            for squares, count in zip(self._squares, self._counts, strict=True)
        ]
        spread, gap = math.sqrt(sum(variances) / 2), known - unknown
        d = gap / spread if spread > 0 else (0.0 if gap == 0 else math.copysign(math.inf, gap))
        return MeanDifference(self._name, known, unknown, min(max(d, -99.0), 99.0))


def difference_within_runs(
    name: str, runs: Sequence[tuple[Moments, Moments]]
) -> MeanDifference | None:
    """Library only: how far known and unknown nodes of the same runs are apart, or None.

    Each run counts by n_known n_unknown / (n_known + n_unknown), as in a comparison of means in
    strata; variances are those within runs.

    >>> old = Moments(90, 90.0, 180.0), Moments(10, 10.0, 20.0)
    >>> new = Moments(10, 50.0, 260.0), Moments(90, 450.0, 2340.0)
    >>> difference_within_runs("degree", [old, new]).d
    0.0
    >>> difference_within_runs("degree", [(Moments(2, 6.0, 20.0), Moments(2, 2.0, 4.0))]).d
    2.0
    """
    within = WithinRuns(name)
    for known, unknown in runs:
        within.add(known, unknown)
    return within.difference


def worst_case_coverage(evaluated: int, covered: int) -> float:
    """Return the coverage if every node of unknown class were missed: covered / evaluated.

    miss <= k * miss of the known + (1 - k), k the known share: it holds whichever nodes are
    unknown.

    >>> worst_case_coverage(evaluated=100, covered=63)
    0.63
    """
    return covered / evaluated if evaluated else 0.0


def selection_bias(
    known: int, unknown: int, shifts: Sequence[MeanDifference]
) -> tuple[float | None, str]:
    """Return the largest |d| and what it means as a sentence; None where too few are on one side.

    >>> selection_bias(500, 300, [MeanDifference("degree", 9.0, 5.0, 0.6)])
    (0.6, 'biased sample: nodes of known class have a mean degree of 9, the others 5 (d = 0.60)')
    >>> selection_bias(500, 3, [])
    (None, '')
    """
    if min(known, unknown) < MIN_NODES_PER_SIDE or not shifts:
        return None, ""
    worst = max(shifts, key=lambda shift: abs(shift.d))
    size = abs(worst.d)
    if size <= SMALL_DIFFERENCE:
        return size, f"nodes of known class are like the others (largest difference d = {size:.2f})"
    how = "biased sample" if size > LARGE_DIFFERENCE else "slightly different sample"
    return size, (
        f"{how}: nodes of known class have a mean {worst.name} of {worst.known:.3g}, the others "
        f"{worst.unknown:.3g} (d = {size:.2f})"
    )


class ExactSum:
    """A running sum of floats that at any time equals `math.fsum` of all addends so far.

    The addends so far are kept as a few numbers that do not overlap (Shewchuk 1997), so that a sum
    over n runs, read after each of them, takes n steps instead of n squared, to the same bit.

    >>> total = ExactSum()
    >>> for addend in [1e16, 1.0, 1.0, -1e16]: total.add(addend)
    >>> total.value
    2.0
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[float] = []

    def add(self, addend: float) -> None:
        """Add a finite number."""
        kept, high = [], addend
        for part in self._parts:
            if abs(high) < abs(part):
                high, part = part, high
            total = high + part
            if rest := part - (total - high):
                kept.append(rest)
            high = total
        self._parts = [*kept, high]

    @property
    def value(self) -> float:
        """The sum, correctly rounded."""
        return math.fsum(self._parts)
