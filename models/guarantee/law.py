"""The law of coverage: what is promised, and how coverage varies when all is well.

Of m evaluated nodes the number covered is beta-binomial(m, n + 1 - l, l), l = floor(alpha (n + 1)),
exactly, for n exchangeable calibration scores without ties: the chance of being covered is itself
drawn once, from Beta(n + 1 - l, l), with the calibration nodes. A binomial band forgets that draw
and is far too narrow.

Weighted calibration has no exact law. Its effective sample size stands in for n, which is then no
whole number, and l is alpha (n + 1) unrounded: the mean is 1 - alpha, the least that the weighted
rule promises. Whatever is computed that way is called approximate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.rank import rank, read_alpha
from ringfence.models.guarantee.large_counts import covered_at_most, fewest_covered

Floats = NDArray[np.float64]

MAX_SUMMED_COUNTS = 20_000  # nodes; the law of more is integrated (`large_counts`)


def coverage_band(n: float, m: int, alpha: float, level: float = 0.95) -> tuple[float, float]:
    """Return the equal-tailed band of the share covered among m evaluated nodes.

    Args:
        n: calibration nodes; a number that is not whole is an effective sample size (approximate).
        m: evaluated nodes whose class is known.
        alpha: the share that may be missed.
        level: probability that coverage lies in the band when all is well, at least.

    Returns:
        (low, high) as fractions of m; (1, 1) where l = 0, since every set is full; (0, 1) for
        m = 0.

    >>> coverage_band(60, 1000, 0.1, level=0.90)
    (0.831, 0.957)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level = {level}; needed: a number between 0 and 1, such as 0.95")
    if m == 0:
        return 0.0, 1.0
    tail = (1.0 - level) / 2.0
    odds = calibration_odds(n, alpha)
    if m > MAX_SUMMED_COUNTS and min(odds) > 0:
        low, high = (fewest_covered(*odds, m, at) for at in (tail, 1.0 - tail))
        return low / m, high / m
    cumulative = np.cumsum(law_of_covered(n, m, read_alpha(alpha)))
    low, high = np.searchsorted(cumulative, [tail, 1.0 - tail])
    return float(low) / m, float(min(high, m)) / m


def coverage_p_value(
    n: float,
    m: int,
    covered: int,
    alpha: float,
    alternative: Literal["lower", "two-sided"] = "lower",
) -> float:
    """Return the p-value of having covered so few of m nodes when all is well.

    Args:
        n: calibration nodes; a number that is not whole is an effective sample size (approximate).
        m: evaluated nodes whose class is known.
        covered: those whose set held it.
        alpha: the share that may be missed.
        alternative: "lower" (is coverage too low?) is P(K <= covered); "two-sided" is
            2 min(P(K <= covered), P(K >= covered)), at most 1.

    >>> round(coverage_p_value(60, 1000, 820, 0.1), 4)
    0.0333
    """
    if not 0 <= covered <= m:
        raise ValueError(f"{covered} of {m} nodes covered; needed: a number from 0 to {m}")
    odds = calibration_odds(n, alpha)
    if alternative == "lower" and m > MAX_SUMMED_COUNTS and min(odds) > 0:
        return covered_at_most(*odds, m, covered)
    law = law_of_covered(n, m, read_alpha(alpha))
    lower = min(1.0, float(np.sum(law[: covered + 1])))
    if alternative == "lower":
        return lower
    if alternative == "two-sided":
        return min(1.0, 2.0 * min(lower, float(np.sum(law[covered:]))))
    raise ValueError(f"alternative = {alternative!r}; needed: 'lower' or 'two-sided'")


def expected_coverage(n: float, alpha: float) -> float:
    """Return the mean coverage 1 - l / (n + 1): between 1 - alpha and 1 - alpha + 1 / (n + 1).

    >>> round(expected_coverage(60, 0.1), 4)
    0.9016
    """
    return 1.0 - _rank(n, read_alpha(alpha)) / (n + 1)


def calibration_odds(n: float, alpha: float) -> tuple[float, float]:
    """Return (a, b) of the Beta(a, b) from which the chance of being covered is drawn.

    a = n + 1 - l, b = l = floor(alpha (n + 1)); b is 0 where every set is full.

    >>> calibration_odds(60, 0.1)
    (55.0, 6.0)
    """
    missed = float(_rank(n, read_alpha(alpha)))
    return n + 1.0 - missed, missed


def smallest_n(alpha: float) -> int:
    """Return the fewest calibration nodes that give a finite threshold: ceil(1 / alpha) - 1.

    >>> smallest_n(0.1), smallest_n(0.01)
    (9, 99)
    """
    share = read_alpha(alpha)
    if share == 0.0:
        raise ValueError("alpha = 0 needs the full set whatever n is; give an alpha above 0")
    n = max(0, math.ceil(1.0 / share) - 2)
    while rank(n, share) == 0:
        n += 1
    return n


def effective_sample_size(weights: Any) -> float:
    """Return (sum w)**2 / sum w**2: how many equally weighted nodes the weights are worth.

    >>> effective_sample_size([1.0, 1.0, 0.5])
    2.7777777777777777
    """
    given = np.asarray(weights, dtype=np.float64)
    if given.size and not (given.min() >= 0.0 and given.max() < np.inf):
        raise ValueError("weights must be finite numbers of at least 0")
    if not given.any():
        return 0.0
    scaled = (given / given.max()).tolist()  # 1e300 squared is no number
    return math.fsum(scaled) ** 2 / math.fsum(w * w for w in scaled)


def coverage_loss(weights: Any, distances: Any, test_weight: float = 1.0) -> float:
    """Bound what drift may cost, coverage >= 1 - alpha - this (Barber et al. 2023).

    sum of w_i d_i / (sum of w_i + w_test), d_i the total-variation distance between the data as it
    is and the data with node i and the evaluated node exchanged.

    Args:
        weights: fixed weights of the calibration nodes [n].
        distances: d_i in [0, 1], one number or [n]; ``swap_distance`` makes them from the drift of
            single nodes. They can't be measured and have to be assumed.
        test_weight: weight of the evaluated node.

    >>> round(coverage_loss([1.0, 0.5], [0.0, 0.1]), 3)
    0.02
    """
    mass = np.asarray(weights, dtype=np.float64)
    apart = np.broadcast_to(np.asarray(distances, dtype=np.float64), mass.shape)
    if mass.size and not (apart.min() >= 0.0 and apart.max() <= 1.0):
        raise ValueError("distances must lie in [0, 1]: they are total-variation distances")
    return math.fsum((mass * apart).tolist()) / (math.fsum(mass.tolist()) + test_weight)


def swap_distance(distances: Any) -> Floats:
    """Bound d_i of independent nodes whose distributions are d apart: 2 d - d**2.

    >>> swap_distance([0.1]).round(2).tolist()
    [0.19]
    """
    apart = np.asarray(distances, dtype=np.float64)
    return np.asarray(apart * (2.0 - apart))


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a calibration set guarantees, in numbers and in a sentence."""

    alpha: float
    calibration_size: int
    effective_size: float
    approximate: bool
    finite: bool
    needed: int
    loss: float = 0.0

    @property
    def expected(self) -> float:
        """Mean coverage when all is well."""
        return expected_coverage(self.effective_size, self.alpha) if self.finite else 1.0

    @property
    def sentence(self) -> str:
        """One sentence for a person."""
        share = _percent(1.0 - self.alpha)
        if not self.finite:
            return f"{self._nodes}; {self.needed} are needed for {share}: every set is full"
        about = f"{'approximately ' * self.approximate}{_percent(self.expected)}"
        if self.loss:
            condition = f"less at most {_percent(self.loss)} for drift"
        else:
            condition = "if new nodes are exchangeable with them"
        return (
            f"{self._nodes}: a set holds the true class with probability at least {share}, "
            f"{about} on average, {condition}"
        )

    @property
    def _nodes(self) -> str:
        plural = "" if self.calibration_size == 1 else "s"
        worth = f" (worth {self.effective_size:.4g} by weight)" if self.approximate else ""
        return f"{self.calibration_size} calibration node{plural}{worth}"


def guarantee(
    n: int, alpha: float, weights: Any = None, test_weight: float = 1.0, loss: float = 0.0
) -> Guarantee:
    """Return what n calibration nodes, or nodes with these weights, promise at alpha.

    ``loss`` is what drift may cost at most, see ``coverage_loss``.

    >>> guarantee(5, 0.1).sentence
    '5 calibration nodes; 9 are needed for 90 %: every set is full'
    >>> guarantee(60, 0.1).sentence
    '60 calibration nodes: a set holds the true class with probability at least 90 %, 90.16 % on \
average, if new nodes are exchangeable with them'
    """
    share = read_alpha(alpha)
    if weights is None:
        return Guarantee(share, n, float(n), False, rank(n, share) > 0, smallest_n(share), loss)
    size = effective_sample_size(weights)
    mass = math.fsum(np.asarray(weights, dtype=np.float64).tolist())
    finite = test_weight / (mass + test_weight) <= share
    return Guarantee(share, n, size, True, finite, smallest_n(share), loss)


def _rank(n: float, alpha: float) -> float:
    return rank(int(n), alpha) if float(n).is_integer() else alpha * (n + 1.0)


def law_of_covered(n: float, m: int, alpha: float) -> Floats:
    """P(k of m nodes covered), k = 0..m."""
    from scipy.special import betaln  # half a CPU second that a run without verdicts saves

    if n < 0 or m < 0:
        raise ValueError(f"n = {n} calibration nodes, m = {m} evaluated ones; needed: at least 0")
    missed = _rank(n, alpha)
    kept = n + 1 - missed
    k = np.arange(m + 1, dtype=np.float64)
    if missed <= 0 or kept <= 0:
        return np.asarray(k == (m if missed <= 0 else 0), dtype=np.float64)
    log_choose = -np.log(m + 1.0) - betaln(m - k + 1.0, k + 1.0)
    law = np.exp(log_choose + betaln(k + kept, m - k + missed) - betaln(kept, missed))
    return np.asarray(law / law.sum())


def _percent(share: float) -> str:
    return f"{round(100.0 * share, 2):g} %"
