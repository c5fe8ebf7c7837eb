"""Thresholds and coverage over the whole of a replayed sequence.

``evaluate_requests`` judges requested nodes, each at its own step, by several rules at once: the
diagonal of the coverage matrix, a column, or a time of each node's own. ``true_scores_over_time``
gives the score of the true class of every node at every step, from which all of C follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.row_thresholds import row_thresholds
from ringfence.models.conformal.sets import prediction_sets
from ringfence.models.scores import ConformityScore, score_named, softmax64
from ringfence.models.sequences.banded import BandedThresholds
from ringfence.models.sequences.replay import LogitRows
from ringfence.models.sequences.sequence import GraphSequence

__all__ = ["Evaluated", "NodeScore", "SequenceRule", "evaluate_requests", "true_scores_over_time"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
SequenceRule = Literal["node", "edge", "edge_exact", "naive", "auto"]


@dataclass(frozen=True, slots=True)
class NodeScore:
    """APS with one u per node [n], or TPS where u is None."""

    u: Floats | None

    def all(self, logits: Floats, nodes: Ints) -> Floats:
        """Scores of every class [k, classes] of these nodes."""
        return np.asarray(self._score.all_classes(softmax64(logits), self._u_of(nodes)))

    def true(self, logits: Floats, nodes: Ints, y: Ints) -> Floats:
        """Scores of the true classes [k] of these nodes; y [n] are those of all nodes."""
        given = softmax64(logits)
        return np.asarray(self._score.true_class(given, self._u_of(nodes), y[nodes]))

    @property
    def _score(self) -> ConformityScore:
        return score_named("TPS" if self.u is None else "APS")

    def _u_of(self, nodes: Ints) -> Floats | None:
        return None if self.u is None else self.u[nodes]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Requests and their results, in order of time: [k] each, per rule where rules differ.

    ``threshold`` is the one that judged the node, ``hit`` whether its set is exactly its class.
    """

    node: Ints
    step: Ints
    threshold: Mapping[SequenceRule, Floats]
    covered: Mapping[SequenceRule, Bools]
    size: Mapping[SequenceRule, Ints]
    hit: Mapping[SequenceRule, Bools]


def evaluate_requests(
    rows: Iterable[LogitRows],
    calibration: Ints,
    y: Ints,
    score: NodeScore,
    alpha: float,
    rules: tuple[SequenceRule, ...],
    sequence: GraphSequence | None = None,
) -> Evaluated:
    """Judge every requested node by each rule, at the step at which it was requested.

    Args:
        rows: from ``replay``, with ``calibration`` as the watched nodes.
        calibration: calibration nodes [n].
        y: true classes of all nodes.
        score: conformity score.
        alpha: share of nodes that may be missed.
        rules: "node" NodeEx · "edge" EdgeEx, test weight 1 · "edge_exact" EdgeEx with the node's
            own 1 / degree · "naive" the threshold of step 0 for ever · "auto" bands of degree.
        sequence: whose graphs the bands are cut in; only "auto" needs it.
    """
    banded = None if sequence is None else BandedThresholds(sequence, alpha)
    parts: list[Evaluated] = []
    naive: float | None = None
    for block in _calibrated(rows, calibration, y, score):
        if naive is None:
            naive = float(row_thresholds(block.scores[:1], alpha)[0])
        limits = {rule: _limits(block, rule, alpha, naive, banded) for rule in rules}
        parts.append(_judge(block, y, score, limits))
    return _joined(parts, rules)


@dataclass(frozen=True, slots=True)
class _Block:
    """Calibration scores and degrees [steps, n], and the requests with the row each looks at."""

    scores: Floats
    degrees: Floats
    node: Ints
    step: Ints
    row: Ints
    degree: Ints
    logits: Floats


def _calibrated(
    rows: Iterable[LogitRows], calibration: Ints, y: Ints, score: NodeScore
) -> Iterator[_Block]:
    from ringfence.models.conformal.kernels.thresholds import fill_forward

    place = np.full(len(y), -1, dtype=np.int64)
    place[calibration] = np.arange(len(calibration))
    scores_now, degrees_now = np.full(len(calibration), np.nan), np.zeros(len(calibration))
    for block in rows:
        steps, tick = np.unique(block.step, return_inverse=True)
        kept = ~block.asked
        node = block.node[kept]
        changed = score.true(block.logits[kept], node, y)
        where = tick[kept].astype(np.int64)
        shape = (len(steps), len(calibration))
        scores, degrees = np.empty(shape), np.empty(shape)
        fill_forward(scores_now, where, place[node], changed, len(steps), scores)
        degrees_of_block = block.degree[kept].astype(np.float64)
        fill_forward(degrees_now, where, place[node], degrees_of_block, len(steps), degrees)
        asked = block.asked
        yield _Block(
            scores, degrees, block.node[asked], block.step[asked], tick[asked].astype(np.int64),
            block.degree[asked], block.logits[asked],
        )  # fmt: skip


def _limits(
    block: _Block,
    rule: SequenceRule,
    alpha: float,
    naive: float,
    banded: BandedThresholds | None,
) -> Floats:
    if rule == "auto":
        if banded is None:
            raise ValueError("bands of degree are cut in a graph; needed: its sequence")
        return banded.limits(block.step, block.degree, block.scores[block.row],
                             block.degrees[block.row])  # fmt: skip
    if rule == "naive":
        return np.full(len(block.node), naive)
    if rule == "node":
        return row_thresholds(block.scores, alpha, rows=block.row)
    test_weights = 1.0 / block.degree if rule == "edge_exact" else None
    return row_thresholds(block.scores, alpha, 1.0 / block.degrees, block.row, test_weights)


def _judge(
    block: _Block, y: Ints, score: NodeScore, limits: Mapping[SequenceRule, Floats]
) -> Evaluated:
    scores = score.all(block.logits, block.node)
    sets = {
        rule: np.asarray(prediction_sets(scores, limit), dtype=bool)
        for rule, limit in limits.items()
    }
    rows, truth = np.arange(len(block.node)), y[block.node]
    covered = {rule: inside[rows, truth] for rule, inside in sets.items()}
    size = {rule: inside.sum(axis=1).astype(np.int64) for rule, inside in sets.items()}
    hit = {rule: covered[rule] & (size[rule] == 1) for rule in sets}
    return Evaluated(block.node, block.step, limits, covered, size, hit)


def _joined(parts: list[Evaluated], rules: tuple[SequenceRule, ...]) -> Evaluated:
    def each(name: str) -> dict[SequenceRule, NDArray[np.generic]]:
        return {rule: np.concatenate([getattr(p, name)[rule] for p in parts]) for rule in rules}

    return Evaluated(
        np.concatenate([part.node for part in parts]),
        np.concatenate([part.step for part in parts]),
        *(each(name) for name in ("threshold", "covered", "size", "hit")),  # type: ignore[arg-type]
    )


def true_scores_over_time(
    rows: Iterable[LogitRows], sequence: GraphSequence, y: Ints, score: NodeScore
) -> Floats:
    """Score of each node's true class on every G_t: float64 [n, steps + 1], nan before arrival.

    ``rows`` from ``replay`` with every node watched and no requests. Memory: n * steps * 8 bytes,
    131 MB for CiteSeer.
    """
    true_scores = np.full((len(y), sequence.steps + 1), np.nan)
    for block in rows:
        true_scores[block.node, block.step] = score.true(block.logits, block.node, y)
    for step in range(1, sequence.steps + 1):
        same = np.isnan(true_scores[:, step])
        true_scores[same, step] = true_scores[same, step - 1]
    return true_scores
