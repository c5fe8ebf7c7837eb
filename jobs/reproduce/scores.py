"""Our rule and other scores on the paper's networks: coverage, size and worst class side by side.

Half of the unseen nodes are there. As many of them as train nodes calibrate, drawn anew several
times, and the others are judged on the subgraph of all that are there: calibration of one moment,
frozen, as a run of ringfence has it. APS with NodeEx is the paper's; APS, DAPS, RAPS, TPS and DTPS
are judged within bands of degree (`rule = "auto"`). The vote joins the sets of sampled subgraphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.finished import induced_logits
from ringfence.jobs.reproduce.published import ALPHA
from ringfence.jobs.reproduce.splits import Model
from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    degrees,
    evaluate,
)
from ringfence.models.rules.base import Rule
from ringfence.models.rules.degree_bands import DEGREE_BANDS
from ringfence.models.rules.node_ex import NODE_EX
from ringfence.models.scores import SCORES, aps, softmax64
from ringfence.models.scores.choice import choose_score
from ringfence.models.scores.registry import REFERENCE
from ringfence.models.sequences.subgraphs import bernoulli_vote, draw_groups, votes

__all__ = [
    "DRAWS",
    "VOTE",
    "ScoreCell",
    "ScoresRecord",
    "judge_scores",
    "score_cells",
    "scores_record",
]

OPTIONS = {"diffusion": 0.5, "penalty": 0.01, "k_reg": 1}
DRAWS = 8
VOTE = "vote"
SUBGRAPHS, PARTS = 10, 5  # K, and into how many groups each round splits the judged nodes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Others = Callable[[Floats, Ints, Floats], Mapping[str, Bools]]
"""Sets of other libraries, from probabilities and classes of calibration nodes, and those of due
nodes."""

ScoresRecord = dict[str, Any]
"""As JSON: figures of a split by "rule score", and by "chosen" the score that ``auto`` took."""


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """Means over splits and draws: shares covered, of all and of the worst class; and size."""

    covered: float
    size: float
    worst_class: float


def scores_record(data: Dataset, model: Model, seed: int) -> ScoresRecord:
    """What `judge_scores` finds on one split, and the vote of one draw."""
    rng = np.random.default_rng([seed, 3])
    results, chosen = judge_scores(data, model, rng, DRAWS)
    results |= {(NODE_EX.name, VOTE): _vote(data, model, rng)}
    return {"chosen": chosen} | {
        f"{rule} {score}": dict(zip(("size", "covered", "worst", "spread"), numbers, strict=True))
        for (rule, score), values in results.items()
        for numbers in [values.tolist()]
    }


def score_cells(records: Sequence[ScoresRecord]) -> dict[str, ScoreCell]:
    """Means over splits by "rule score", such as "auto DAPS"; "auto auto" is what each chose."""
    if not records:
        return {}
    by_score = {
        name: [record[name] for record in records] for name in records[0] if name != "chosen"
    }
    by_score["auto auto"] = [record[f"auto {record['chosen']}"] for record in records]
    return {
        name: ScoreCell(
            *(float(np.mean([cell[of] for cell in cells])) for of in ("covered", "size", "worst"))
        )
        for name, cells in by_score.items()
    }


def judge_scores(
    data: Dataset,
    model: Model,
    rng: np.random.Generator,
    draws: int,
    others: Others | None = None,
    other_rule: str = "",
) -> tuple[dict[tuple[str, str], Floats], str]:
    """Return size, coverage, worst class and spread over classes by rule and score.

    Args:
        data: the dataset.
        model: the network of one split.
        rng: chooses which nodes are present and which calibrate.
        draws: of calibration nodes; figures are their means.
        others: sets of other libraries on the same nodes, kept under `other_rule`.
        other_rule: as `others`.

    Returns:
        the figures, and the score that `score = "auto"` takes, chosen on validation nodes alone.
    """
    nodes, seen = _there(data, model, rng)
    scores, degree, probabilities = _scores(data, model, nodes, rng)
    validation, truth = len(model.validation_nodes), data.y[nodes]
    held = {name: values[:validation] for name, values in scores.items()}
    choice = choose_score(held, truth[:validation], ALPHA, seed=0).score
    variants: list[tuple[Rule, str]] = [(NODE_EX, REFERENCE.name)]
    variants += [(DEGREE_BANDS, score) for score in SCORES]
    rows: dict[tuple[str, str], list[Floats]] = {}
    for _ in range(draws):
        order = seen + rng.permutation(len(nodes) - seen)
        calibration, judged = order[: model.calibration], order[model.calibration :]
        for rule, score in variants:
            measured = _judge(rule, scores[score], degree, truth, calibration, judged)
            rows.setdefault((rule.name, score), []).append(measured)
        if others is not None:
            given = probabilities[calibration], truth[calibration], probabilities[judged]
            for name, sets in others(*given).items():
                rows.setdefault((other_rule, name), []).append(_summary(sets, truth[judged]))
    return {key: np.mean(values, axis=0) for key, values in rows.items()}, choice


def _there(data: Dataset, model: Model, rng: np.random.Generator) -> tuple[Ints, int]:
    """Validation and train nodes, then half of the others; and how many the first are."""
    unseen = np.setdiff1d(np.arange(data.nodes), model.context)
    there = rng.permutation(unseen)[: len(unseen) // 2]
    known = np.concatenate([model.validation_nodes, model.train_nodes])
    return np.concatenate([known, there]), len(known)


def _scores(
    data: Dataset, model: Model, nodes: Ints, rng: np.random.Generator
) -> tuple[dict[str, Floats], Ints, Floats]:
    """Every score of the nodes on the subgraph that they induce, degrees and probabilities."""
    place = np.full(data.nodes, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    inside = place[data.edges]
    inside = inside[:, (inside >= 0).all(axis=0)]
    both = np.unique(np.concatenate([inside, inside[::-1]], axis=1), axis=1)
    probabilities, u = softmax64(induced_logits(data, model, nodes)), rng.random(len(nodes))
    given = OPTIONS | {"edge_index": both}
    scores = {
        name: np.asarray(
            score.all_classes(
                probabilities, u, **{option: given[option] for option in score.options}
            )
        )
        for name, score in SCORES.items()
    }
    return scores, degrees(both, len(nodes)), np.asarray(probabilities)


def _judge(rule: Rule, scores: Floats, degree: Ints, truth: Ints, known: Ints, due: Ints) -> Floats:
    true_scores = scores[known, truth[known]]
    result = evaluate(
        NodeScores(true_scores, scores[due], true_scores),
        NodeDegrees(degree[known], degree[due], degree_counts(degree)),
        Promise((ALPHA,), rule),
    )
    return _summary(result.sets[0], truth[due])


def _vote(data: Dataset, model: Model, rng: np.random.Generator) -> Floats:
    """Sets by the vote of sampled subgraphs, APS, one draw of calibration nodes."""
    nodes, seen = _there(data, model, rng)
    order = rng.permutation(nodes[seen:])
    known, due = order[: model.calibration], order[model.calibration :]
    u = rng.random(data.nodes)

    def score(some: Ints) -> Floats:
        return np.asarray(aps(softmax64(induced_logits(data, model, some)), u[some]))

    size = max(1, len(due) // PARTS)
    groups = draw_groups(due, count=SUBGRAPHS, size=size, seed=int(rng.integers(2**31)))
    counted = votes(score, groups, known, data.y[known], ALPHA, model.context)
    sets = bernoulli_vote(counted, SUBGRAPHS, rng.random(counted.shape))
    return _summary(sets, data.y[due])


def _summary(sets: Bools, truth: Ints) -> Floats:
    """Mean size, coverage, that of the worst class, and the spread over classes."""
    hits = sets[np.arange(len(truth)), truth]
    each = np.array([hits[truth == y].mean() for y in np.unique(truth)])
    return np.array([sets.sum(axis=1).mean(), hits.mean(), each.min(), each.max() - each.min()])
