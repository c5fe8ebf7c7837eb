"""Adaptive conformal inference (Gibbs and Candès 2021) with classes that become known late.

The sets of run t hold the classes with p > a_t. Once the classes of an earlier run s are known, its
miss rate e_s (share of its known nodes with p of the true class <= a_s) moves the level, once:

    a_{t+1} = a_t + step * sum of (alpha - e_s) over the runs s that are answered after run t

The level is never clipped inside the recursion: at a_t <= 0 every set is full and e_t = 0, at
a_t >= 1 every set is empty and e_t = 1, so it comes back by itself. If at most D earlier runs wait
for their answer whenever a run is made, then after T answered runs, whatever happened,

    |mean of e_s - alpha| <= (max(alpha, 1 - alpha) + step (D + 1)) / (step T).

docs/mathematics.md has the proof. It speaks of the mean over runs of nodes whose class became known
and that the model had seen in training; of no single run, and of nobody whose class stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class AdaptiveLevel:
    """The level in force for the next run, as the recursion has it: it may lie outside [0, 1].

    answered counts the runs whose miss rate has been taken in, misses is the sum of these rates.

    >>> start = AdaptiveLevel.start(alpha=0.1, step=0.05)
    >>> round(start.after([0.3]).level, 4), round(start.after([0.0]).level, 4)
    (0.09, 0.105)
    """

    alpha: float
    step: float
    level: float
    answered: int = 0
    misses: float = 0.0

    @classmethod
    def start(cls, alpha: float, step: float) -> AdaptiveLevel:
        """Return the level before any class is known: alpha itself."""
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha = {alpha}; needed: a number between 0 and 1")
        if not 0.0 < step < math.inf:
            raise ValueError(f"step = {step}; needed: a number above 0, such as 0.05")
        return cls(alpha, step, alpha)

    @property
    def in_force(self) -> float:
        """The level that sets use: p > 0 is always true, p > 1 never."""
        return min(1.0, max(0.0, self.level))

    def after(self, miss_rates: Iterable[float]) -> AdaptiveLevel:
        """Return the level after the miss rates of some runs, each in [0, 1], became known."""
        rates = [float(rate) for rate in miss_rates]
        if any(not 0.0 <= rate <= 1.0 for rate in rates):
            raise ValueError(f"miss rates {rates}; needed: shares between 0 and 1")
        moved = self.level + self.step * math.fsum(self.alpha - rate for rate in rates)
        return replace(
            self,
            level=moved,
            answered=self.answered + len(rates),
            misses=math.fsum([self.misses, *rates]),
        )

    @property
    def mean_miss_rate(self) -> float | None:
        """Mean of the miss rates taken in so far: what the bound speaks of."""
        return self.misses / self.answered if self.answered else None

    def bound(self, waiting: int) -> float:
        """Return how far the mean miss rate may lie from alpha with at most `waiting` runs open."""
        return miss_rate_bound(self.alpha, self.step, self.answered, waiting)


def miss_rate_bound(alpha: float, step: float, answered: int, waiting: int) -> float:
    """Return (max(alpha, 1 - alpha) + step (waiting + 1)) / (step answered), at most 1.

    Args:
        alpha: the share of nodes that may be missed.
        step: how far one run of misses moves the level.
        answered: runs whose miss rate was taken in (T).
        waiting: largest number of earlier runs that waited for their answer at once (D).

    >>> round(miss_rate_bound(0.1, 0.05, answered=275, waiting=7), 4)
    0.0945
    """
    if answered == 0:
        return 1.0
    return min(1.0, (max(alpha, 1.0 - alpha) + step * (waiting + 1)) / (step * answered))
