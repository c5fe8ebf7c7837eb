"""Library only, until jobs use it.

The law of coverage where calibration nodes change from run to run and the level may adapt.

With frozen calibration all runs share one draw of the calibration nodes: the beta-binomial law
(`law`). Nodes that join make later thresholds answer for earlier misses, so that coverage over many
runs scatters less; an adaptive level pulls it to 1 - alpha on top. No closed law is known for that,
but when all is well everything depends on ranks alone, so it can be simulated from the schedule on
record: who calibrated which run, and which runs had been answered by then.

A path draws, for each run, how many of its known nodes lie in the lowest share alpha of all scores
(B_s of k_s). The share that run t misses is the level-quantile of its calibration nodes, to first
order (Bahadur 1966)

    q_t = floor(a_t (n + 1)) / (n + 1) + alpha - (sum of B_s over calibration nodes) / n

and of its own nodes those below q_t are missed: the same draw that will calibrate later runs. Whole
scores need not be drawn, so 2,000 paths of a year of daily runs take about a second. Against whole
simulations it is compared in tests/models/guarantee/test_living_law.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PATHS = 2_000
TRAINING = -1
"""Origin of the calibration nodes that the training split gave."""


@dataclass(frozen=True, slots=True)
class LivingRun:
    """One run of a model: its known nodes, who calibrated it, who had been answered since.

    known: nodes whose class is known by now.
    calibration: origin -> nodes of that origin among its calibration nodes; an origin is the place
        of an earlier run in the sequence, or `TRAINING`.
    answered: places of the runs whose miss rates moved the level before this run.
    """

    known: int
    calibration: tuple[tuple[int, int], ...]
    answered: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CoverageLaw:
    """Simulated misses of each run when all is well [runs, paths]."""

    known: Ints
    missed: Ints

    def band(self, runs: slice, level: float = 0.95) -> tuple[float, float]:
        """Return the equal-tailed band of the share covered over some runs together."""
        m = int(self.known[runs].sum())
        if m == 0:
            return 0.0, 1.0
        tail = (1.0 - level) / 2.0
        missed = self.missed[runs].sum(axis=0)
        high, low = np.quantile(missed, [tail, 1.0 - tail], method="nearest")
        return 1.0 - float(low) / m, 1.0 - float(high) / m

    def p_value(self, runs: slice, covered: int) -> float:
        """Return the probability of so few covered; beyond the paths' reach by a normal tail."""
        m = int(self.known[runs].sum())
        missed = self.missed[runs].sum(axis=0)
        as_many = int(np.count_nonzero(missed >= m - covered))
        by_rank = (1 + as_many) / (1 + int(missed.size))
        if as_many:
            return by_rank
        spread = max(float(missed.std()), 0.5)
        tail = float(ndtr(-(m - covered - 0.5 - float(missed.mean())) / spread))
        return min(by_rank, tail)


def simulate_law(
    runs: Sequence[LivingRun],
    training_nodes: int,
    alpha: float,
    step: float = 0.0,
    seed: int = 0,
    paths: int = PATHS,
) -> CoverageLaw:
    """Return the misses of each run when all is well.

    Args:
        runs: the runs of one model under the same terms, oldest first.
        training_nodes: calibration nodes of the training split.
        alpha: the share that may be missed.
        step: of the adaptive level; 0 where the level is fixed.
        seed: of the simulation.
        paths: how many sequences are drawn.

    >>> frozen = [LivingRun(100, ((TRAINING, 200),)) for _ in range(20)]
    >>> low, high = simulate_law(frozen, 200, 0.1).band(slice(0, 20))
    >>> 0.84 < low < 0.87 and 0.93 < high < 0.95
    True
    """
    rng = np.random.default_rng(seed)
    lowest = {TRAINING: rng.binomial(max(training_nodes, 0), alpha, paths).astype(np.float64)}
    sizes = {TRAINING: max(training_nodes, 1)}
    level = np.full(paths, alpha)
    missed = np.zeros((len(runs), paths), np.int64)
    for t, run in enumerate(runs):
        for s in run.answered:
            level = level + step * (alpha - missed[s] / max(runs[s].known, 1))
        q = _miss_share(run.calibration, lowest, sizes, level, alpha, paths)
        below = rng.binomial(run.known, alpha, paths)
        inside = rng.binomial(below, np.minimum(q / alpha, 1.0))
        beyond = rng.binomial(run.known - below, np.maximum(q - alpha, 0.0) / (1.0 - alpha))
        missed[t] = np.where(q < alpha, inside, below + beyond)
        lowest[t], sizes[t] = below.astype(np.float64), max(run.known, 1)
    return CoverageLaw(np.array([run.known for run in runs], np.int64), missed)


def _miss_share(
    calibration: Sequence[tuple[int, int]],
    lowest: dict[int, Floats],
    sizes: dict[int, int],
    level: Floats,
    alpha: float,
    paths: int,
) -> Floats:
    """Share of nodes below the threshold of each path [paths]."""
    n = sum(count for _, count in calibration)
    if n == 0:
        return np.zeros(paths)
    below = np.zeros(paths)
    for origin, count in calibration:
        below += lowest[origin] * (count / sizes[origin])
    rank = np.floor(np.clip(level, 0.0, 1.0) * (n + 1) + 1e-9)
    q = np.clip(rank / (n + 1) + alpha - below / n, 0.0, 1.0)
    return np.where(rank <= 0, 0.0, np.where(rank > n, 1.0, q))
