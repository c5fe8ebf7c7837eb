"""An e-process against a decline of coverage: an alarm whose error holds over a whole life.

The anytime bound compares all runs since some run with the law of a fresh model, so that a small
loss after many good runs hides in the luck that the law allows for. Here each run is compared with
what the runs before it predict. The number missed of its m known nodes is beta-binomial when all is
well, with a mean and a size that follow from the past:

- frozen calibration (proved): Polya's urn after all earlier labels, mean (l + missed so far) /
  (n + 1 + known so far), size n + 1 + known so far;
- calibration that lives, or a level that adapts (measured): mean and spread by regression on the
  misses of earlier runs over the simulated paths of the law in force (`living_law`), so that a
  level which swings by itself is expected to swing.

A mean below alpha counts as alpha: coverage that falls from 95 to 91 % breaks no promise of 90. The
ratio of the probabilities of what was seen, if that share of misses were r times as large and if it
is as predicted, grows with every miss and has mean at most 1 when all is well. Its product over
runs from j on bets on a change at run j. Capital 1 is split over j (1 / ((j + 1) (j + 2)), which
sums to 1) and over r; the total is a supermartingale, so it ever reaches 1 / delta with probability
at most delta (Ville 1939), however often one looks and however long the model lives. That needs the
counts of a run to be final when it is bet on. Where classes trickle into runs that were counted
before, this holds for the counts of each look by itself; over all looks it is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from ringfence.models.guarantee.law import calibration_odds
from ringfence.models.guarantee.living_law import CoverageLaw

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DECLINE_DELTA = 0.01
TIMES_AS_MANY = (1.25, 1.5, 2.0, 3.0)
"""Miss rates that are bet on, as multiples of the predicted one."""

MAX_MISSED = 0.95
MAX_SIZE = 1e6
SPANS = (1, 4, 16, 64)
"""Runs before a run whose misses predict its own, beside all runs before it."""


@dataclass(frozen=True, slots=True)
class PredictedMisses:
    """The beta-binomial law of each run given the runs before it: mean [runs] and size [runs]."""

    mean: Floats
    size: Floats


@dataclass(frozen=True, slots=True)
class Decline:
    """Capital of the bet after each run, as logarithms [runs], and the likeliest first bad run."""

    log_capital: Floats
    since: int

    @property
    def newest(self) -> float:
        """The logarithm of the capital after the last run; 0 before any."""
        return float(self.log_capital[-1]) if len(self.log_capital) else 0.0

    def alarm(self, delta: float = DECLINE_DELTA) -> bool:
        """Whether the capital stands at 1 / delta or more after the last run."""
        return self.newest >= -math.log(delta)


def predict_frozen(n: float, known: Ints, missed: Ints, alpha: float) -> PredictedMisses:
    """Return each run's law given the labels of the runs before it, by Polya's urn.

    >>> urn = predict_frozen(99, np.array([100, 100]), np.array([20, 9]), 0.1)
    >>> urn.mean.round(3).tolist(), urn.size.tolist()
    ([0.1, 0.15], [100.0, 200.0])
    """
    kept, may_miss = calibration_odds(n, alpha)
    known_before = np.concatenate([[0], np.cumsum(known)[:-1]]) if len(known) else known
    missed_before = np.concatenate([[0], np.cumsum(missed)[:-1]]) if len(known) else missed
    size = kept + may_miss + known_before
    return PredictedMisses((may_miss + missed_before) / size, size.astype(np.float64))


def predict_living(law: CoverageLaw, missed: Ints) -> PredictedMisses:
    """Return each run's law given the misses of the runs before it, from the law's paths.

    Args:
        law: misses of every run on each simulated path.
        missed: misses of the runs on record [runs].
    """
    known = np.diff(law.known)
    seen = np.concatenate([[0], np.cumsum(missed)])
    mean, size = np.zeros(len(known)), np.full(len(known), MAX_SIZE)
    for t, nodes in enumerate(known):
        if not nodes:
            continue
        share = (law.missed[t + 1] - law.missed[t]) / nodes
        spans = [(max(0, t - back), t) for back in (*SPANS, t)]
        spans = [span for span in dict.fromkeys(spans) if law.known[span[1]] > law.known[span[0]]]
        many = [law.known[last] - law.known[first] for first, last in spans]
        on_paths = [
            (law.missed[last] - law.missed[first]) / m
            for (first, last), m in zip(spans, many, strict=True)
        ]
        here = [
            (seen[last] - seen[first]) / m for (first, last), m in zip(spans, many, strict=True)
        ]
        mean[t], variance = _regress(share, on_paths, here)
        size[t] = _size_of(variance, int(nodes), mean[t])
    return PredictedMisses(mean, size)


def decline(known: Ints, missed: Ints, predicted: PredictedMisses, alpha: float) -> Decline:
    """Return the capital of the bet after each run, oldest first.

    >>> known, well = np.full(40, 200), np.full(40, 20)
    >>> worse = np.where(np.arange(40) < 25, 20, 30)
    >>> for missed in (well, worse):
    ...     bet = decline(known, missed, predict_frozen(500, known, missed, 0.1), 0.1)
    ...     print(bet.alarm(), bet.since)
    False 0
    True 25
    """
    if not len(known):
        return Decline(np.zeros(0), 0)
    ratios = np.stack(
        [_log_ratio(known, missed, predicted, alpha, times) for times in TIMES_AS_MANY], axis=1
    )
    capital = np.zeros(len(known))
    bets = np.full(len(TIMES_AS_MANY), -np.inf)
    for t in range(len(known)):
        started = -math.log((t + 1.0) * (t + 2.0) * len(TIMES_AS_MANY))
        bets = np.logaddexp(bets, started) + ratios[t]
        waiting = -math.log(t + 2.0)  # what later runs start with
        capital[t] = np.logaddexp(np.logaddexp.reduce(bets), waiting)
    after = np.cumsum(ratios[::-1], axis=0)[::-1]
    since = int(np.argmax(after.max(axis=1))) if after.max() > 0 else 0
    return Decline(capital, since)


def _log_ratio(
    known: Ints, missed: Ints, predicted: PredictedMisses, alpha: float, times: float
) -> Floats:
    """Logarithm of P(missed) at `times` the predicted mean over P(missed) at it [runs]."""
    mean = np.clip(np.maximum(predicted.mean, alpha), 1e-9, MAX_MISSED)
    more = np.minimum(times * mean, (1.0 + MAX_MISSED) / 2)
    covered, size = known - missed, predicted.size
    usual = betaln(size * mean + missed, size * (1 - mean) + covered)
    usual = usual - betaln(size * mean, size * (1 - mean))
    worse = betaln(size * more + missed, size * (1 - more) + covered)
    worse = worse - betaln(size * more, size * (1 - more))
    return np.asarray(np.where(known > 0, worse - usual, 0.0))


def _regress(share: Floats, on_paths: list[Floats], here: list[float]) -> tuple[float, float]:
    """Mean and variance of a run's miss rate, given those of earlier spans of runs."""
    if not on_paths:
        return float(share.mean()), float(share.var())
    columns = np.stack([np.ones(len(share)), *on_paths], axis=1)
    weights, *_ = np.linalg.lstsq(columns, share, rcond=None)
    left = share - columns @ weights
    variance = float(left @ left) / max(1, len(share) - columns.shape[1])
    return float(weights[0] + np.dot(weights[1:], here)), variance


def _size_of(variance: float, nodes: int, mean: float) -> float:
    """The size of the beta-binomial law of `nodes` with this variance of their share."""
    binomial = max(mean * (1.0 - mean), 1e-12) / nodes
    excess = variance / binomial - 1.0
    if nodes < 2 or excess <= (nodes - 1) / MAX_SIZE:
        return MAX_SIZE
    return max(1.0, (nodes - 1) / excess - 1.0)
