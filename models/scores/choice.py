"""Choice of a score on validation nodes: the smallest sets whose worst class is hardly missed more.

Sets of different scores are compared by halves: one half of the validation nodes gives the
threshold, the other half is judged, over many random halves. A score may be chosen if its worst
class is covered at most 3 points less than APS's; of those the one with the smallest sets is taken.
The twenty validation nodes of a class can't resolve three points, so the burden of proof matters.
Scores that take probabilities as they are (TPS, DTPS) cover easy classes at the cost of hard ones,
by up to 20 points on the paper's data sets: for them the lower confidence bound counts (one-sided,
95 %). DAPS and RAPS were at most 3 points lower there: they are left out where a class is too low
by more than one standard error. Calibration nodes are never looked at, so the choice costs no
validity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.sets import threshold
from ringfence.models.scores.registry import REFERENCE, score_named

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_LOSS_OF_WORST_CLASS = 0.03
MIN_NODES_OF_A_CLASS = 5  # a class with fewer validation nodes says nothing about its coverage
HALVES = 40
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
    """The score that was chosen, the trials it was chosen from, and the reason as a sentence."""

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
    if REFERENCE.name not in candidates:
        raise ValueError(
            f"no {REFERENCE.name} among {', '.join(candidates)}; other scores are compared with it"
        )
    halves = _halves(len(classes), seed)
    reference = _hits(candidates[REFERENCE.name], classes, alpha, halves).covered
    trials = [
        _try(name, scores, classes, alpha, halves, reference) for name, scores in candidates.items()
    ]
    least = next(trial for trial in trials if trial.score == REFERENCE.name).worst_class
    allowed = [
        trial for trial in trials if _worst_that_counts(trial) >= least - MAX_LOSS_OF_WORST_CLASS
    ]
    best = min(allowed, key=lambda trial: (trial.mean_size, trial.score != REFERENCE.name))
    return ScoreChoice(best.score, tuple(trials), _describe(best, trials, len(classes)))


def _halves(nodes: int, seed: int) -> list[Ints]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(nodes)[: nodes // 2] for _ in range(HALVES)]


def _worst_that_counts(trial: ScoreTrial) -> float:
    """Coverage of the worst class; its lower confidence bound if the score is not randomised."""
    return trial.perhaps_up_to if score_named(trial.score).randomised else trial.surely_at_least


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
    hits = _hits(scores, classes, alpha, halves)
    sizes = np.bincount(classes, minlength=scores.shape[1])
    counted = np.flatnonzero(sizes >= MIN_NODES_OF_A_CLASS)
    groups = [classes == c for c in counted] or [np.ones(len(classes), np.bool_)]
    each = np.array([hits.covered[of_class].mean() for of_class in groups])
    errors = np.array(
        [
            (hits.covered[of_class] - reference[of_class]).std()
            / np.sqrt(max(1, int(of_class.sum()) - 1))
            for of_class in groups
        ]
    )
    return ScoreTrial(
        name,
        hits.mean_size,
        float(hits.covered.mean()),
        float(each.min()),
        float(each.max() - each.min()),
        float((each - ONE_SIDED_95 * errors).min()),
        float((each + BENEFIT_OF_DOUBT * errors).min()),
    )


def _describe(best: ScoreTrial, trials: Sequence[ScoreTrial], nodes: int) -> str:
    reference = next(trial for trial in trials if trial.score == REFERENCE.name)
    return (
        f"{best.score}, chosen on {nodes} validation nodes: {best.mean_size:.2f} classes per set, "
        f"worst class {100 * best.worst_class:.0f} % ({REFERENCE.name}: "
        f"{reference.mean_size:.2f} and {100 * reference.worst_class:.0f} %)"
    )
