"""A sum of floats that can be asked after every addend: what `math.fsum` of all of them would say.

The addends so far are kept as a few numbers that do not overlap (Shewchuk 1997), so that a sum over
n runs, asked after each of them, takes n steps and not n squared, to the same bit.
"""

from __future__ import annotations

import math


class ExactSum:
    """A running sum without rounding; its value is rounded once.

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
