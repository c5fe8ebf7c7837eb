"""Choice of a score on validation nodes alone: the smallest sets that leave no class behind.

Sets of different scores are compared by halves: one half of the validation nodes gives the
threshold, the other half is judged, over many random halves. A score may be chosen if its worst
class is covered at most 3 points less than APS's; of those the one with the smallest sets is taken.
The twenty validation nodes of a class can't tell three points, so it counts who has to show it.
Scores that take probabilities as they are (TPS, DTPS) cover easy classes at the cost of hard ones,
by up to 20 points on the paper's data sets: for them the lower end of what the nodes say counts
(one-sided, 95 %). DAPS and RAPS were at most 3 points lower there: they are left out where a class
is too low by more than one standard error.
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
SHOWN_FOR_SURE = ("TPS", "DTPS")
"""Scores whose worst class must be shown not to fall: measured to leave hard classes behind."""

ONE_SIDED_95 = 1.645
BENEFIT_OF_DOUBT = 1.0
"""Standard errors by which a class must be too low for one of the other scores to be left out."""


@dataclass(frozen=True, slots=True)
class ScoreTrial:
    """How one score did on the validation nodes: mean set size, coverage, that of its worst class.

    `spread` is the largest difference in coverage between two classes; `surely_at_least` is below
    the coverage of its worst class with 95 % confidence, as far as it differs from APS's;
    `perhaps_up_to` is what it is with one standard error more.
    """

    score: str
    mean_size: float
    coverage: float
    worst_class: float
    spread: float
    surely_at_least: float = 0.0
    perhaps_up_to: float = 1.0


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
    reference = _hits(candidates[REFERENCE], classes, alpha, halves).covered
    trials = [
        _try(name, scores, classes, alpha, halves, reference) for name, scores in candidates.items()
    ]
    least = next(one for one in trials if one.score == REFERENCE).worst_class
    allowed = [one for one in trials if _worst_that_counts(one) >= least - MAX_LOSS_OF_WORST_CLASS]
    best = min(allowed, key=lambda one: (one.mean_size, one.score != REFERENCE))
    return ScoreChoice(best.score, tuple(trials), _describe(best, trials, len(classes)))


def _halves(nodes: int, seed: int) -> list[Ints]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(nodes)[: nodes // 2] for _ in range(HALVES)]


def _worst_that_counts(trial: ScoreTrial) -> float:
    return trial.surely_at_least if trial.score in SHOWN_FOR_SURE else trial.perhaps_up_to


@dataclass(frozen=True, slots=True)
class _Hits:
    """Of each node the share of halves in which it was covered [v]; mean set size."""

    covered: Floats
    mean_size: float


def _hits(scores: Floats, classes: Ints, alpha: float, halves: Sequence[Ints]) -> _Hits:
    nodes = len(classes)
    true = scores[np.arange(nodes), classes]
    covered, judged, sizes = np.zeros(nodes), np.zeros(nodes), 0.0
    for half in halves:
        limit = float(threshold(true[half], alpha))
        rest = np.setdiff1d(np.arange(nodes), half)
        sizes += float((scores[rest] >= limit).sum())
        covered[rest] += true[rest] >= limit
        judged[rest] += 1
    return _Hits(covered / np.maximum(judged, 1), sizes / max(1.0, float(judged.sum())))


def _try(
    name: str,
    scores: Floats,
    classes: Ints,
    alpha: float,
    halves: Sequence[Ints],
    reference: Floats,
) -> ScoreTrial:
    found = _hits(scores, classes, alpha, halves)
    sizes = np.bincount(classes, minlength=scores.shape[1])
    counted = np.flatnonzero(sizes >= MIN_NODES_OF_A_CLASS)
    groups = [classes == c for c in counted] or [np.ones(len(classes), np.bool_)]
    each = np.array([found.covered[own].mean() for own in groups])
    errors = np.array(
        [
            (found.covered[own] - reference[own]).std() / np.sqrt(max(1, int(own.sum()) - 1))
            for own in groups
        ]
    )
    return ScoreTrial(
        name,
        found.mean_size,
        float(found.covered.mean()),
        float(each.min()),
        float(each.max() - each.min()),
        float((each - ONE_SIDED_95 * errors).min()),
        float((each + BENEFIT_OF_DOUBT * errors).min()),
    )


def _describe(best: ScoreTrial, trials: Sequence[ScoreTrial], nodes: int) -> str:
    own = next(one for one in trials if one.score == REFERENCE)
    return (
        f"{best.score}, chosen on {nodes} validation nodes: {best.mean_size:.2f} classes per set, "
        f"worst class {100 * best.worst_class:.0f} % ({REFERENCE}: {own.mean_size:.2f} and "
        f"{100 * own.worst_class:.0f} %)"
    )
