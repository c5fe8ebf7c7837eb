"""Runs that are judged once, so that every rule for the level is replayed over the same p-values.

p-values do not depend on the level. Who calibrates, when a run's nodes join and what p-values come
of it is decided by the functions that scoring uses, as in `benchmarks.drift_replay`.
"""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.drift_replay import (
    Floats,
    Ints,
    Mode,
    Result,
    Sequence,
    choose_calibration,
    entropies,
    evaluate_run,
    ready_runs,
)
from benchmarks.level_rules import LevelRule


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One run before its level: p-values of its nodes [m, classes] and their true classes [m].

    known: which of its nodes answer for it [m] · answered: places of the earlier runs that are
    answered before this one · surprise: mean entropy of the network's probabilities, its nodes
    less those that calibrate.
    """

    p: Floats
    y: Ints
    known: NDArray[np.bool_]
    answered: tuple[int, ...]
    surprise: float

    @property
    def p_true(self) -> Floats:
        """p-values of the true classes [m]."""
        return self.p[np.arange(len(self.y)), self.y]


def judge_runs(sequence: Sequence, mode: Mode, alpha: float, first: int) -> list[JudgedRun]:
    """Return every run's p-values under one way to calibrate."""
    ready = ready_runs(sequence, mode.cohorts, first)
    answered_at = _first_answers(ready, first)
    joined, judged = np.zeros(len(sequence.y), bool), []
    for place, runs in enumerate(ready):
        run = first + place
        may_join = np.zeros(sequence.runs + 1, bool)
        may_join[runs] = True
        joined |= may_join[sequence.arrives] & (sequence.known <= run)
        calibration = choose_calibration(sequence, mode, joined)
        due = np.flatnonzero(sequence.arrives == run)
        p = evaluate_run(sequence, mode, run, calibration, due, alpha, alpha).p_values
        known = sequence.known[due] <= answered_at.get(place, -1)
        fresh = tuple(s for s, when in answered_at.items() if when == run)
        surprise = float(
            entropies(sequence, run, due).mean() - entropies(sequence, run, calibration).mean()
        )
        judged.append(JudgedRun(p, sequence.y[due], known, fresh, surprise))
    return judged


def replay_rule(judged: List[JudgedRun], rule: LevelRule) -> Result:
    """Give every run the rule's level; the rule hears of each answered run once."""
    result = Result()
    for place, run in enumerate(judged):
        for earlier in run.answered:
            rule.answer(earlier, judged[earlier].p_true[judged[earlier].known])
        level = rule.level_of(place, run.surprise)
        result.add_run(run.p > level, run.y, level)
    return result


def replay_known_levels(judged: List[JudgedRun], block: int, alpha: float) -> Result:
    """Give each block of runs the level that it needs: what only somebody who knew could do."""
    result = Result()
    for start in range(0, len(judged), block):
        runs = judged[start : start + block]
        level = needed_level(runs, alpha)
        for run in runs:
            result.add_run(run.p > level, run.y, level)
    return result


def needed_level(runs: List[JudgedRun], alpha: float) -> float:
    """Return the highest level at which some runs together miss at most a share alpha."""
    together = np.sort(np.concatenate([run.p_true for run in runs]))
    return float(np.nextafter(together[int(alpha * len(together))], 0.0))


def correlate_needs(judged: List[JudgedRun], alpha: float) -> dict[str, float]:
    """Return how the level that a run needs goes with earlier ones, and with its own entropy."""
    needs = np.array([needed_level([run], alpha) for run in judged])
    surprises = np.array([run.surprise for run in judged])
    lags = {f"r_{lag}": float(np.corrcoef(needs[:-lag], needs[lag:])[0, 1]) for lag in (1, 3, 7)}
    return {**lags, "r_entropy": float(np.corrcoef(surprises, needs)[0, 1])}


def _first_answers(ready: list[Ints], first: int) -> dict[int, int]:
    """The run before which each run (by its place) is answered."""
    answers: dict[int, int] = {}
    for place, runs in enumerate(ready):
        for run in runs:
            answers.setdefault(int(run) - first, first + place)
    return answers
