"""One sequence of runs under one way to calibrate: what `benchmarks.drift` measures.

Who calibrates, when a run's nodes join, how the level moves and how p-values and sets come about is
decided by the functions that scoring uses (`models.calibration`, `models.conformal.evaluate`); here
are only arrays instead of databases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.models.calibration.adaptive_level import AdaptiveLevel
from ringfence.models.calibration.cohort import Labels, settle_runs
from ringfence.models.calibration.window import newest
from ringfence.models.conformal.evaluate import (
    Evaluation,
    NodeDegrees,
    NodeScores,
    Promise,
    evaluate,
)
from ringfence.models.conformal.weights import drift_weights
from ringfence.models.rules.degree_bands import DEGREE_BANDS
from ringfence.models.rules.node_ex import NODE_EX

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to calibrate: `window` None is growing, 0 is frozen.

    bands: calibration nodes that a band of degrees is expected to hold, times alpha; None without.
    by_entropy: weigh calibration nodes by how much more often due nodes have the entropy of their
    probabilities, as `weights = "shift"` does by degree.
    """

    name: str
    window: int | None = 0
    step: float = 0.0
    cohorts: bool = True
    half_life: float | None = None
    bands: float | None = None
    score: str = "APS"
    by_entropy: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """Runs over nodes in the order of arrival.

    scores_at(score, run, rows): scores of all classes on the graph of that run [rows, classes].
    degrees_at(run): degrees of all nodes there [n]; None where nodes have no relationships.
    chances_at(run, rows): the network's probabilities on the graph of that run [rows, classes].
    ready: by whether cohorts wait, the runs that may join by each run; kept for the next replay.
    """

    y: Ints
    arrives: Ints
    known: Ints
    calibration: Ints
    draw: Floats
    runs: int
    scores_at: Callable[[str, int, Ints], Floats]
    degrees_at: Callable[[int], Ints] | None = None
    chances_at: Callable[[int, Ints], Floats] | None = None
    ready: dict[bool, list[Ints]] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """Coverage, size and full sets of every run, over all its nodes."""

    nodes: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    full: list[int] = field(default_factory=list)
    level: list[float] = field(default_factory=list)
    by_class: list[Ints] = field(default_factory=list)

    def add_run(self, inside: NDArray[np.bool_], y: Ints, level: float) -> NDArray[np.bool_]:
        """Count the sets [m, classes] of a run; return which hold the true class [m]."""
        hit = inside[np.arange(len(y)), y]
        self.nodes.append(len(y))
        self.covered.append(int(hit.sum()))
        self.size.append(int(inside.sum()))
        self.full.append(int(inside.all(axis=1).sum()))
        self.level.append(level)
        of = np.stack([np.bincount(y, h, inside.shape[1]) for h in (hit, 1 | hit)])
        self.by_class.append(of.astype(np.int64))
        return np.asarray(hit)

    def worst_block(self, runs: int) -> float:
        """Lowest coverage of `runs` runs in a row, block by block."""
        whole = len(self.nodes) // runs * runs
        covered = np.array(self.covered[:whole]).reshape(-1, runs).sum(axis=1)
        return float((covered / np.array(self.nodes[:whole]).reshape(-1, runs).sum(axis=1)).min())

    def worst_stretch(self, runs: int) -> float:
        """Lowest coverage of any `runs` runs in a row, wherever they start."""
        window = np.ones(runs)
        covered = np.convolve(self.covered, window, "valid")
        return float((covered / np.convolve(self.nodes, window, "valid")).min())

    def summary(self, block: int) -> dict[str, float]:
        nodes = sum(self.nodes)
        hit, all_of = np.sum(self.by_class, axis=0)
        return {
            "covered": sum(self.covered) / nodes,
            "worst": self.worst_block(block),
            "size": sum(self.size) / nodes,
            "full": sum(self.full) / nodes,
            "worst_class": float((hit / np.maximum(all_of, 1))[all_of > 0].min()),
        }


def replay(sequence: Sequence, mode: Mode, alpha: float = 0.1, runs_from: int = 1) -> Result:
    """Score every run; nodes join calibration and answer the level as their classes come in."""
    result, level = Result(), AdaptiveLevel.start(alpha, mode.step or 1.0)
    joined = np.zeros(len(sequence.y), bool)
    answered: set[int] = set()
    missed_by = np.zeros(len(sequence.y), bool)
    runs = range(runs_from, sequence.runs + 1)
    for run, ready in zip(runs, ready_runs(sequence, mode.cohorts, runs_from), strict=True):
        may_join = np.zeros(sequence.runs + 1, bool)
        may_join[ready] = True
        joined |= may_join[sequence.arrives] & (sequence.known <= run)
        fresh = [s for s in ready if s not in answered]
        answered |= set(fresh)
        if mode.step:
            rates = []
            for s in fresh:
                of_run = (sequence.arrives == s) & (sequence.known <= run)
                rates.append(float(missed_by[of_run].mean()))
            level = level.after(rates)
        calibration = choose_calibration(sequence, mode, joined)
        due = np.flatnonzero(sequence.arrives == run)
        used = level.in_force if mode.step else alpha
        inside = evaluate_run(sequence, mode, run, calibration, due, alpha, used).sets[0]
        missed_by[due] = ~result.add_run(inside, sequence.y[due], level.level)
    return result


def evaluate_run(
    sequence: Sequence,
    mode: Mode,
    run: int,
    calibration: Ints,
    due: Ints,
    alpha: float,
    level: float,
) -> Evaluation:
    """Return p-values and sets of the due nodes, as a scoring run makes them."""
    rows = np.concatenate([calibration, due])
    scores, n = sequence.scores_at(mode.score, run, rows), len(calibration)
    true = scores[np.arange(n), sequence.y[calibration]]
    weights = None
    if mode.half_life is not None:
        ages = run - sequence.arrives[calibration]
        weights = np.asarray(drift_weights(ages, mode.half_life))
    degrees = NodeDegrees(np.ones(n, np.int64), np.ones(len(due), np.int64), np.array([0, 1]))
    if mode.bands is not None and sequence.degrees_at is not None:
        there = sequence.degrees_at(run)
        degrees = NodeDegrees(there[calibration], there[due], np.bincount(there))
    if mode.by_entropy:
        thousandths = (1_000.0 * entropies(sequence, run, rows)).astype(np.int64)
        degrees = NodeDegrees(thousandths[:n], thousandths[n:], np.array([0]))
    used = np.full((1, scores.shape[1]), level)
    promise = Promise(
        (alpha,), NODE_EX if mode.bands is None else DEGREE_BANDS, used,
        band_nodes=mode.bands or 3.0, shift=mode.by_entropy,
    )  # fmt: skip
    return evaluate(NodeScores(true, scores[n:], true), degrees, promise, weights)


def entropies(sequence: Sequence, run: int, rows: Ints) -> Floats:
    """Return the entropy of the network's probabilities of some nodes on the graph of a run."""
    if sequence.chances_at is None:
        return np.zeros(len(rows))
    chances = sequence.chances_at(run, rows)
    return np.asarray(-(chances * np.log(np.maximum(chances, 1e-12))).sum(axis=1))


def ready_runs(sequence: Sequence, cohorts: bool, first: int) -> list[Ints]:
    """Return, for each run from the first on, the earlier runs whose nodes may join."""
    if cohorts not in sequence.ready:
        runs = range(first, sequence.runs + 1)
        sequence.ready[cohorts] = [_ready_runs(sequence, run, cohorts, first) for run in runs]
    return sequence.ready[cohorts]


def _ready_runs(sequence: Sequence, run: int, cohorts: bool, first: int) -> Ints:
    """Earlier runs whose nodes may join: with some known class, settled where cohorts wait."""
    runs = np.arange(first, run)
    of = sequence.arrives
    live = (of >= first) & (of < run)
    place = of[live] - first

    noticed = sequence.known[live] <= run
    lags = np.maximum(sequence.known[live][noticed] - of[live][noticed], 1)
    if not cohorts:
        return runs[np.bincount(place[noticed], minlength=len(runs)) > 0]
    labels = Labels(place[noticed], sequence.y[live][noticed], lags)
    usual = np.bincount(sequence.y[sequence.calibration], minlength=int(sequence.y.max()) + 1)
    evaluated = np.bincount(place, minlength=len(runs))
    return runs[settle_runs(evaluated, labels, usual.astype(np.float64)).ready]


def choose_calibration(sequence: Sequence, mode: Mode, joined: NDArray[np.bool_]) -> Ints:
    """Return who calibrates, of the training split and those who joined."""
    if mode.window == 0:
        return sequence.calibration
    later = np.flatnonzero(joined)
    if mode.window is not None and len(later) > mode.window:  # rows stand in the order of arrival
        border = sequence.arrives[later[-mode.window]]
        later = later[np.searchsorted(sequence.arrives[later], border) :]
    rows = np.concatenate([sequence.calibration, later])
    if mode.window is None:
        return rows
    keep = newest(sequence.arrives[rows], sequence.draw[rows], mode.window)
    return rows[keep]
