"""Choice of a score on validation nodes alone: the smallest sets that leave no class behind.

Sets of different scores are compared by halves: one half of the validation nodes gives the
threshold, the other half is judged, over many random halves. A score may be chosen if its worst
class is covered at most 3 points less than APS's; of those the one with the smallest sets is taken.
Calibration nodes are never looked at, so the choice costs no validity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.sets import threshold

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

REFERENCE = "APS"
MAX_LOSS_OF_WORST_CLASS = 0.03
MIN_NODES_OF_A_CLASS = 5  # a class with fewer validation nodes says nothing about its coverage
HALVES = 40


@dataclass(frozen=True, slots=True)
class ScoreTrial:
    """How one score did on the validation nodes: mean set size, coverage, that of its worst class.

    `spread` is the largest difference in coverage between two classes.
    """

    score: str
    mean_size: float
    coverage: float
    worst_class: float
    spread: float


@dataclass(frozen=True, slots=True)
class ScoreChoice:
    """The score that was chosen, the trials it was chosen from, and why in words."""

    score: str
    trials: tuple[ScoreTrial, ...]
    sentence: str


def choose_score(
    candidates: Mapping[str, Floats], classes: Ints, alpha: float, seed: int
) -> ScoreChoice:
    """Return the score with the smallest sets whose worst class is not far below APS's.

    Args:
        candidates: scores of the validation nodes by name, APS among them [v, classes] each.
        classes: their true classes [v].
        alpha: the share that may be missed.
        seed: of the random halves.
    """
    if REFERENCE not in candidates:
        raise ValueError(
            f"no {REFERENCE} among {', '.join(candidates)}; it is what others are held to"
        )
    halves = _halves(len(classes), seed)
    trials = [_try(name, scores, classes, alpha, halves) for name, scores in candidates.items()]
    least = next(one for one in trials if one.score == REFERENCE).worst_class
    allowed = [one for one in trials if one.worst_class >= least - MAX_LOSS_OF_WORST_CLASS]
    best = min(allowed, key=lambda one: (one.mean_size, one.score != REFERENCE))
    return ScoreChoice(best.score, tuple(trials), _describe(best, trials, len(classes)))


def _halves(nodes: int, seed: int) -> list[Ints]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(nodes)[: nodes // 2] for _ in range(HALVES)]


def _try(
    name: str, scores: Floats, classes: Ints, alpha: float, halves: Sequence[Ints]
) -> ScoreTrial:
    n_classes = scores.shape[1]
    sizes, judged = 0.0, 0
    hits, seen = np.zeros(n_classes), np.zeros(n_classes)
    true = scores[np.arange(len(classes)), classes]
    for half in halves:
        limit = float(threshold(true[half], alpha))
        rest = np.setdiff1d(np.arange(len(classes)), half)
        sizes += float((scores[rest] >= limit).sum())
        judged += len(rest)
        hits += np.bincount(classes[rest], true[rest] >= limit, n_classes)
        seen += np.bincount(classes[rest], minlength=n_classes)
    counted = np.bincount(classes, minlength=n_classes) >= MIN_NODES_OF_A_CLASS
    each = hits[counted] / seen[counted] if counted.any() else np.array([hits.sum() / seen.sum()])
    overall = float(hits.sum() / max(1, judged))
    return ScoreTrial(
        name, sizes / max(1, judged), overall, float(each.min()), float(each.max() - each.min())
    )


def _describe(best: ScoreTrial, trials: Sequence[ScoreTrial], nodes: int) -> str:
    own = next(one for one in trials if one.score == REFERENCE)
    return (
        f"{best.score}, chosen on {nodes} validation nodes: {best.mean_size:.2f} classes per set, "
        f"worst class {100 * best.worst_class:.0f} % ({REFERENCE}: {own.mean_size:.2f} and "
        f"{100 * own.worst_class:.0f} %)"
    )
