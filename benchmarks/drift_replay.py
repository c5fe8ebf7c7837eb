"""One sequence of runs under one way to calibrate: what `benchmarks.drift` measures.

Who calibrates, when a run's nodes join and how the level moves is decided by the functions that
scoring uses (`models.calibration`); here are only arrays instead of databases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.models.calibration.adaptive_level import AdaptiveLevel
from ringfence.models.calibration.cohort import settled
from ringfence.models.calibration.window import newest

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to calibrate: `window` None is growing, 0 is frozen."""

    name: str
    window: int | None = 0
    step: float = 0.0
    cohorts: bool = False
    half_life: float | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """Runs over nodes in the order of arrival.

    scores_at(run, rows): scores of all classes on the graph of that run [rows, classes].
    strata_at(run, rows): strata that calibrate apart, or None.
    """

    y: Ints
    arrives: Ints
    known: Ints
    calibration: Ints
    draw: Floats
    runs: int
    scores_at: Callable[[int, Ints], Floats]
    strata_at: Callable[[int, Ints, Ints], tuple[Ints, Ints]] | None = None


@dataclass(slots=True)
class Result:
    """Coverage, size and full sets of every run, over all its nodes."""

    nodes: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    full: list[int] = field(default_factory=list)
    level: list[float] = field(default_factory=list)
    by_class: list[Ints] = field(default_factory=list)

    def worst_block(self, runs: int) -> float:
        """Lowest coverage of `runs` runs in a row, block by block."""
        whole = len(self.nodes) // runs * runs
        covered = np.array(self.covered[:whole]).reshape(-1, runs).sum(axis=1)
        return float((covered / np.array(self.nodes[:whole]).reshape(-1, runs).sum(axis=1)).min())

    def summary(self, block: int) -> dict[str, float]:
        nodes = sum(self.nodes)
        return {
            "covered": sum(self.covered) / nodes,
            "worst": self.worst_block(block),
            "size": sum(self.size) / nodes,
            "full": sum(self.full) / nodes,
        }


def p_values(known: Floats, scores: Floats, weights: Floats | None) -> Floats:
    order = np.argsort(known)
    count = np.searchsorted(known[order], scores, side="right")
    if weights is None:
        return (1.0 + count) / (len(known) + 1.0)
    mass = np.concatenate([[0.0], np.cumsum(weights[order])])
    return (mass[count] + 1.0) / (mass[-1] + 1.0)


def replay(sequence: Sequence, mode: Mode, alpha: float = 0.1, runs_from: int = 1) -> Result:
    """Score every run; nodes join calibration and answer the level as their classes come in."""
    result, level = Result(), AdaptiveLevel.start(alpha, mode.step or 1.0)
    joined = np.zeros(len(sequence.y), bool)
    answered: set[int] = set()
    missed_by = np.zeros(len(sequence.y), bool)
    for run in range(runs_from, sequence.runs + 1):
        ready = _ready_runs(sequence, run, mode.cohorts, runs_from)
        new = np.isin(sequence.arrives, ready) & (sequence.known <= run) & ~joined
        joined |= new
        fresh = [s for s in ready if s not in answered]
        answered |= set(fresh)
        if mode.step:
            rates = []
            for s in fresh:
                of_run = (sequence.arrives == s) & (sequence.known <= run)
                rates.append(float(missed_by[of_run].mean()))
            level = level.after(rates)
        calibration = _chosen(sequence, mode, joined)
        due = np.flatnonzero(sequence.arrives == run)
        known, judged = (sequence.scores_at(run, rows) for rows in (calibration, due))
        true = known[np.arange(len(calibration)), sequence.y[calibration]]
        weights = None
        if mode.half_life is not None:
            age = run - sequence.arrives[calibration]
            weights = 2.0 ** (-age / mode.half_life)
        p = _p_in_strata(sequence, run, calibration, due, true, judged, weights)
        inside = p > (level.in_force if mode.step else alpha)
        hit = inside[np.arange(len(due)), sequence.y[due]]
        missed_by[due] = ~hit
        result.nodes.append(len(due))
        result.covered.append(int(hit.sum()))
        result.size.append(int(inside.sum()))
        result.full.append(int(inside.all(axis=1).sum()))
        result.level.append(level.level)
        of = np.stack([np.bincount(sequence.y[due], h, judged.shape[1]) for h in (hit, 1 | hit)])
        result.by_class.append(of.astype(np.int64))
    return result


def _p_in_strata(
    sequence: Sequence,
    run: int,
    calibration: Ints,
    due: Ints,
    true: Floats,
    judged: Floats,
    weights: Floats | None,
) -> Floats:
    if sequence.strata_at is None:
        return p_values(true, judged, weights)
    ours, theirs = sequence.strata_at(run, calibration, due)
    p = np.ones_like(judged)
    for stratum in np.unique(theirs):
        own = ours == stratum
        p[theirs == stratum] = p_values(
            true[own], judged[theirs == stratum], None if weights is None else weights[own]
        )
    return p


def _ready_runs(sequence: Sequence, run: int, cohorts: bool, first: int) -> Ints:
    """Earlier runs whose nodes may join: with some known class, settled where cohorts wait."""
    runs = np.arange(first, run)
    of = sequence.arrives
    live = (of >= first) & (of < run)
    place = of[live] - first

    def count(mask: NDArray[np.bool_]) -> Ints:
        return np.bincount(place[mask], minlength=len(runs)).astype(np.int64)

    noticed = sequence.known[live] <= run
    known = count(noticed)
    if not cohorts:
        return runs[known > 0]
    lags = sequence.known[live][noticed] - of[live][noticed]
    return runs[settled(len(runs), place[noticed], lags)]


def _chosen(sequence: Sequence, mode: Mode, joined: NDArray[np.bool_]) -> Ints:
    if mode.window == 0:
        return sequence.calibration
    rows = np.concatenate([sequence.calibration, np.flatnonzero(joined)])
    if mode.window is None:
        return rows
    keep = newest(sequence.arrives[rows], sequence.draw[rows], mode.window)
    return rows[keep]
