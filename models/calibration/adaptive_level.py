"""Adaptive conformal inference (Gibbs and Candès 2021) with classes that become known late.

The sets of run t hold the classes with p > a_t. Once the classes of an earlier run are known, it is
*answered*, once: the share of its known nodes whose true class has p <= some level moves the level
of the runs to come. Which level decides whether late classes make it swing.

`today` (new versions). Answered runs are taken in one after the other, each judged by its stored
p-values at the level that stands by then; the next run uses the level after the last one:

    b_0 = alpha,    b_n = b_{n-1} + step * (alpha - e_n),    e_n = share of p <= b_{n-1}

p-values do not depend on levels, so b_1, b_2, … are the levels that immediate answers would have
given, used later: there is no feedback over the delay, and nothing swings however late classes are
and however many runs are answered at once. After T answered runs, whatever happened and with any
delay,

    |mean of e_n - alpha| <= (max(alpha, 1 - alpha) + step) / (step T).

`then` (versions trained before). e_s counts the misses of run s at the level that it used:

    a_{t+1} = a_t + step * sum of (alpha - e_s) over the runs s that are answered after run t

That is a feedback loop with the delay D, stable only for step < 2 sin(pi / (2 (2 D + 1)))
(`largest_stable_step`): D <= 30 runs at the step .05. Its bound, about the misses of the sets
themselves, is the one above with step (D + 1) in place of the second step.

Under both the level is never clipped inside the recursion: at a level <= 0 every set is full and
nobody is missed, at one >= 1 everybody is, so it comes back by itself. docs/mathematics.md has the
proofs, and what they do not say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

TODAY: Final = "today"
THEN: Final = "then"


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
        """Return the level once the miss rates of some runs, each in [0, 1], are known."""
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

    def after_runs(self, p_true: Iterable[NDArray[np.float64]]) -> AdaptiveLevel:
        """Return the level after some runs were judged at it, one after the other.

        Args:
            p_true: p-values of the true classes of each run's known nodes [known], in the order in
                which the runs are answered; one without known nodes says nothing.

        >>> start = AdaptiveLevel.start(alpha=0.1, step=0.05)
        >>> run = np.array([0.095, 0.5])  # missed at .1; once the level is lower, covered
        >>> [round(start.after_runs([run] * n).level, 4) for n in (1, 2)]
        [0.08, 0.085]
        """
        level = self
        for p in p_true:
            if len(p):
                level = level.after([float(np.mean(p <= level.level))])
        return level

    @property
    def mean_miss_rate(self) -> float | None:
        """Mean of the miss rates counted so far: what the bound is about."""
        return self.misses / self.answered if self.answered else None

    def bound(self, waiting: int = 0) -> float:
        """Return how far the mean miss rate may lie from alpha; see `miss_rate_bound`."""
        return miss_rate_bound(self.alpha, self.step, self.answered, waiting)


def miss_rate_bound(alpha: float, step: float, answered: int, waiting: int = 0) -> float:
    """Return (max(alpha, 1 - alpha) + step (waiting + 1)) / (step answered), at most 1.

    Args:
        alpha: the share of nodes that may be missed.
        step: how far one run of misses moves the level.
        answered: runs whose miss rate was taken in (T).
        waiting: under `then` the largest number of earlier runs that waited for their answer at
            once (D); under `today` 0, for the bound does not depend on it.

    >>> round(miss_rate_bound(0.1, 0.05, answered=275, waiting=7), 4)
    0.0945
    >>> round(miss_rate_bound(0.1, 0.05, answered=275), 4)
    0.0691
    """
    if answered == 0:
        return 1.0
    return min(1.0, (max(alpha, 1.0 - alpha) + step * (waiting + 1)) / (step * answered))


def largest_stable_step(delay: int) -> float:
    """Return the step below which `then` does not swing where classes are `delay` runs late.

    >>> round(largest_stable_step(30), 3), round(largest_stable_step(31), 3)
    (0.051, 0.05)
    >>> largest_stable_step(31) < 0.05
    True
    """
    return 2.0 * math.sin(math.pi / (2.0 * (2 * delay + 1)))
