"""The law of coverage where calibration nodes change from run to run and the level may adapt.

With frozen calibration all runs share one draw of the calibration nodes: the beta-binomial law
(`law`). Nodes that join make later thresholds answer for earlier misses, so that coverage over many
runs scatters less; an adaptive level also pulls it to 1 - alpha. No closed form is known for that,
but when all is well everything depends on ranks alone, so it can be simulated from the recorded
schedule: which nodes calibrated each run, and which runs had moved the level by then.

A path draws, for each run, how many of its known nodes lie in the lowest share alpha of all scores
(B_s of k_s). The share that run t misses is the level-quantile of its calibration nodes, to first
order (Bahadur 1966)

    q_t = floor(a_t (n + 1)) / (n + 1) + alpha - (sum of B_s over calibration nodes) / n

and its own nodes below q_t are missed: the same draw calibrates later runs. Complete scores need
not be drawn, so 2,000 paths of a year of daily runs take about a second. In bands of degree the
level is rounded down in each (`rounding`), and the spread is that of as many nodes as one stratum
would need (`worth`). Classes or groups that calibrate for themselves are drawn side by side, with a
level each or one for all, and their sum is the law of all nodes (`simulate_parts`). It is compared
with complete simulations in tests/models/guarantee/test_living_law.py and
tests/statistics/test_verdicts_of_living_sets.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PATHS = 2_000
MAX_CELLS = 4_000_000  # runs times paths: fewer paths where there are very many runs
MAX_CELLS_OF_PARTS = 12_000_000  # the same over all parts that are drawn side by side
MIN_PATHS = 400


@dataclass(frozen=True, slots=True)
class LivingRun:
    """One run of a model: its known nodes, its calibration nodes, the runs that moved its level.

    known: nodes whose class is known by now.
    training: calibration nodes that the training split gave.
    joined: calibration nodes that earlier runs gave: those at the places `first` to `last` - 1.
    answered: places of the runs whose miss rates moved the level before this run.
    worth: the number of calibration nodes in one stratum that has the same spread; None: all.
    rounding: by how much less than alpha is missed on average, as bands round their ranks down;
        None if one stratum judged all nodes.
    """

    known: int
    training: int
    joined: int = 0
    first: int = 0
    last: int = 0
    answered: tuple[int, ...] = ()
    worth: float | None = None
    rounding: float | None = None


@dataclass(frozen=True, slots=True)
class LivingPart:
    """Nodes with calibration nodes of their own (a class, a group), run by run.

    training: calibration nodes of the training split. alpha: the share that may be missed.
    """

    runs: Sequence[LivingRun]
    training: int
    alpha: float


@dataclass(frozen=True, slots=True)
class CoverageLaw:
    """Simulated misses when all is well.

    known, missed: nodes of known class [runs + 1] and misses [runs + 1, paths] of all runs before
    each place, so that any runs in a row cost one difference.
    """

    known: Ints
    missed: Ints

    @classmethod
    def of_runs(cls, known: Ints, missed: Ints) -> CoverageLaw:
        """Return the law from the counts of single runs [runs] and [runs, paths]."""
        nobody = np.zeros((1, missed.shape[1]), np.int64)
        return cls(
            np.concatenate([[0], np.cumsum(known)]),
            np.concatenate([nobody, np.cumsum(missed, axis=0, dtype=np.int64)]),
        )

    def among(self, places: Sequence[int]) -> CoverageLaw:
        """Return the law of some of the runs, in the given order."""
        each = np.array(places, np.int64)
        return CoverageLaw.of_runs(np.diff(self.known)[each], np.diff(self.missed, axis=0)[each])

    def band(self, first: int, last: int, level: float = 0.95) -> tuple[float, float]:
        """Return the equal-tailed band of the share covered over runs `first` to `last` - 1."""
        m = int(self.known[last] - self.known[first])
        if m == 0:
            return 0.0, 1.0
        tail = (1.0 - level) / 2.0
        missed = self.missed[last] - self.missed[first]
        high, low = np.quantile(missed, [tail, 1.0 - tail], method="nearest")
        return 1.0 - float(low) / m, 1.0 - float(high) / m

    def p_value(self, first: int, last: int, covered: int) -> float:
        """Return the probability of so few covered; by a normal tail if no path has so few."""
        m = int(self.known[last] - self.known[first])
        missed = self.missed[last] - self.missed[first]
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
    judged_today: bool = False,
) -> CoverageLaw:
    """Return the misses of each run when all is well.

    Args:
        runs: the runs of one model, oldest first.
        training_nodes: calibration nodes of the training split.
        alpha: the share that may be missed.
        step: of the adaptive level; 0 where the level is fixed.
        seed: of the simulation.
        paths: how many sequences are drawn, fewer for very many runs.
        judged_today: whether an answered run is judged at the level of the day (`adaptive_level`).

    >>> frozen = [LivingRun(100, 200) for _ in range(20)]
    >>> low, high = simulate_law(frozen, 200, 0.1).band(0, 20)
    >>> 0.84 < low < 0.87 and 0.93 < high < 0.95
    True
    """
    part = LivingPart(runs, training_nodes, alpha)
    (law,) = simulate_parts([part], step, seed, paths, judged_today=judged_today)
    return law


def simulate_parts(
    parts: Sequence[LivingPart],
    step: float = 0.0,
    seed: int = 0,
    paths: int = PATHS,
    answered: Sequence[tuple[int, ...]] | None = None,
    judged_today: bool = False,
) -> list[CoverageLaw]:
    """Return the law of each part, path by path of the same sequences: their sum is that of all.

    Args:
        parts: all with the same runs.
        step: of the adaptive levels; 0 where they are fixed.
        seed: of the simulation.
        paths: as in `simulate_law`.
        answered: where one level serves all parts, places of the runs that had moved it before each
            run, by the misses of all parts together; None where each part has a level of its own.
        judged_today: as in `simulate_law`.

    >>> half = LivingPart([LivingRun(50, 100) for _ in range(20)], 100, 0.1)
    >>> low, high = sum_of_laws(simulate_parts([half, half])).band(0, 20)
    >>> 0.84 < low < 0.87 and 0.93 < high < 0.95
    True
    """
    rng = np.random.default_rng(seed)
    places = len(parts[0].runs)
    cells = min(MAX_CELLS, MAX_CELLS_OF_PARTS // len(parts))
    paths = min(paths, max(MIN_PATHS, cells // max(1, places)))
    drawn = [_PartPaths(part, rng, paths) for part in parts]
    redrawn = rng if judged_today else None
    for t in range(places):
        if answered is None:
            for paths_of_part in drawn:
                _move_levels([paths_of_part], paths_of_part.part.runs[t].answered, step, redrawn)
        else:
            _move_levels(drawn, answered[t], step, redrawn)
        for paths_of_part in drawn:
            paths_of_part.draw(t, rng)
    return [
        CoverageLaw.of_runs(paths_of_part.known, paths_of_part.missed) for paths_of_part in drawn
    ]


def sum_of_laws(laws: Sequence[CoverageLaw]) -> CoverageLaw:
    """Return the law of all parts together from those of the parts, made by one simulation."""
    known = np.sum([law.known for law in laws], axis=0)
    return CoverageLaw(known, np.sum([law.missed for law in laws], axis=0))


def _move_levels(
    parts: Sequence[_PartPaths],
    answered: Sequence[int],
    step: float,
    redrawn: np.random.Generator | None,
) -> None:
    """Let the misses of some runs, of all parts together, move the level that the parts share.

    With the generator `redrawn` the misses of each run are those at the level of its turn.
    """
    for s in answered:
        nodes = sum(int(part.known[s]) for part in parts)
        missed = np.sum(
            [part.missed[s] if redrawn is None else part.misses_now(s, redrawn) for part in parts],
            axis=0,
        )
        for part in parts:
            part.level = part.level + step * (part.part.alpha - missed / max(nodes, 1))


class _PartPaths:
    """The paths of one part, run after run."""

    def __init__(self, part: LivingPart, rng: np.random.Generator, paths: int) -> None:
        self.part = part
        training = part.training
        self.at_training = rng.binomial(max(training, 0), part.alpha, paths) / max(training, 1)
        self.known = np.array([run.known for run in part.runs], np.int64)
        self.missed = np.zeros((len(part.runs), paths), np.int64)
        self.missed_share = np.zeros((len(part.runs), paths), np.float32)
        # known nodes of all runs before a place, and how many lie in the lowest share alpha
        self.so_far = np.concatenate([[0], np.cumsum(self.known)])
        self.lowest = np.zeros((len(part.runs) + 1, paths))
        self.level = np.full(paths, part.alpha)

    def share_missed(self, t: int) -> Floats:
        """Return the share of nodes that run `t` would miss at the level of now [paths]."""
        run = self.part.runs[t]
        nodes = self.so_far[run.last] - self.so_far[run.first]
        joined = (self.lowest[run.last] - self.lowest[run.first]) / max(nodes, 1)
        of_joined = joined if nodes else self.at_training
        return _miss_share(run, self.at_training, of_joined, self.level, self.part.alpha)

    def misses_now(self, s: int, rng: np.random.Generator) -> Ints:
        """Draw how many nodes of an earlier run lie below its threshold at the level of now.

        Its nodes are cut at three places already: at the lowest share alpha, at what it missed,
        and at the ends; between two cuts they are uniform.
        """
        alpha, now, then = self.part.alpha, self.share_missed(s), self.missed_share[s]
        below = (self.lowest[s + 1] - self.lowest[s]).astype(np.int64)
        cuts = np.stack([np.zeros_like(then), np.minimum(then, alpha), np.maximum(then, alpha)])
        ends = np.concatenate([cuts[1:], np.ones((1, len(then)))])
        missed, known = self.missed[s], np.full(len(then), self.known[s])
        counts = np.stack([np.minimum(missed, below), np.maximum(missed, below), known])
        counts = np.diff(counts, axis=0, prepend=0)
        widths = np.maximum(ends - cuts, 1e-12)
        inside = np.clip((now - cuts) / widths, 0.0, 1.0)
        return np.asarray(rng.binomial(counts, inside).sum(axis=0))

    def draw(self, t: int, rng: np.random.Generator) -> None:
        """Draw the misses of run `t`."""
        run, alpha, lowest = self.part.runs[t], self.part.alpha, self.lowest
        paths = self.missed.shape[1]
        q = self.share_missed(t)
        self.missed_share[t] = q
        below = rng.binomial(run.known, alpha, paths)
        inside = rng.binomial(below, np.minimum(q / alpha, 1.0))
        beyond = rng.binomial(run.known - below, np.maximum(q - alpha, 0.0) / (1.0 - alpha))
        self.missed[t] = np.where(q < alpha, inside, below + beyond)
        lowest[t + 1] = lowest[t] + below


def _miss_share(
    run: LivingRun, at_training: Floats, of_joined: Floats, level: Floats, alpha: float
) -> Floats:
    """Share of nodes below the threshold of each path [paths].

    at_training, of_joined: share of those calibration nodes in the lowest share alpha [paths].
    """
    n = run.training + run.joined
    if n == 0:
        return np.zeros(len(level))
    off = alpha - (run.training * at_training + run.joined * of_joined) / n
    if run.worth is not None and run.worth > 0:
        off = off * math.sqrt(max(1.0, n / run.worth))
    if run.rounding is not None:
        return np.clip(np.clip(level, 0.0, 1.0) - run.rounding + off, 0.0, 1.0)
    rank = np.floor(np.clip(level, 0.0, 1.0) * (n + 1) + 1e-9)
    q = np.clip(rank / (n + 1) + off, 0.0, 1.0)
    return np.where(rank <= 0, 0.0, np.where(rank > n, 1.0, q))
