"""Graph sequences and their coverage matrix: what the theorems are about, as arrays.

A sequence starts with context (train and validation nodes) and calibration at step 0, and grows in
steps 1 .. steps by nodes or by edges in uniformly random order. The coverage matrix C says for each
node and step whether the node is covered if it is evaluated then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.models.conformal.sets import prediction_sets, threshold
from ringfence.models.conformal.weights import edge_weights
from ringfence.models.networks.edges import canonical_edges

__all__ = [
    "CoverageMatrix",
    "GraphSequence",
    "coverage_matrix",
    "edge_sequence",
    "node_sequence",
    "ordered_sequence",
    "scores_over_time",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MatrixRule = Literal["node", "edge", "naive"]
NOT_EVALUATED = -1


@dataclass(frozen=True, slots=True)
class GraphSequence:
    """A growing graph: each undirected edge once, and the step at which each part arrives.

    edges int64 [2, E] · node_step int64 [n] and edge_step int64 [E], 0 for what is there from the
    start, ``steps + 1`` for nodes that never get an edge · calibration: node numbers · evaluated:
    bool [n], all nodes but context and calibration.
    """

    edges: Ints
    node_step: Ints
    edge_step: Ints
    calibration: Ints
    evaluated: NDArray[np.bool_]
    steps: int

    def edge_index(self, step: int) -> torch.Tensor:
        """Edges of G_step in both directions, for a network; nodes keep their numbers."""
        there = self.edges[:, self.edge_step <= step]
        return torch.from_numpy(canonical_edges(there, len(self.node_step)))

    def degrees(self, step: int) -> Ints:
        """Degrees in G_step, int64 [n]."""
        there = self.edges[:, self.edge_step <= step]
        return np.bincount(there.ravel(), minlength=len(self.node_step)).astype(np.int64)


def node_sequence(
    edges: Ints, nodes: int, context: Ints, *, calibration: int, steps: int, seed: int
) -> GraphSequence:
    """Node-exchangeable: the nodes outside ``context`` in uniformly random order.

    The first ``calibration`` of them calibrate, the others arrive in ``steps`` equal groups, each
    node with its edges to what is there.

    >>> path = np.array([[0, 1, 2], [1, 2, 3]])
    >>> sequence = node_sequence(path, 4, np.array([0]), calibration=1, steps=2, seed=1)
    >>> sequence.node_step.tolist(), sequence.edge_step.tolist(), sequence.calibration.tolist()
    ([0, 0, 1, 2], [0, 1, 2], [1])
    """
    order = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(nodes), context))
    return ordered_sequence(edges, nodes, context, order, calibration=calibration, steps=steps)


def ordered_sequence(
    edges: Ints, nodes: int, context: Ints, order: Ints, *, calibration: int, steps: int
) -> GraphSequence:
    """Nodes in a given order, such as that of a date: the first ``calibration`` of them calibrate.

    ``order`` holds each node outside ``context`` once. Exchangeable only if the order is random.
    """
    node_step = np.zeros(nodes, dtype=np.int64)
    node_step[order[calibration:]] = _in_steps(len(order) - calibration, steps)
    edge_step = node_step[edges].max(axis=0, initial=0)
    return _sequence(edges, node_step, edge_step, context, order[:calibration], steps)


def edge_sequence(
    edges: Ints, nodes: int, context: Ints, *, calibration_edges: int, steps: int, seed: int
) -> GraphSequence:
    """Edge-exchangeable: the edges not inside ``context`` in uniformly random order.

    Both ends of the first ``calibration_edges`` calibrate, less the context; the other edges arrive
    in ``steps`` equal groups. A node exists from its first edge on.
    """
    inside = np.isin(edges, context).all(axis=0)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(~inside))
    edge_step = np.zeros(edges.shape[1], dtype=np.int64)
    edge_step[order[calibration_edges:]] = _in_steps(len(order) - calibration_edges, steps)
    node_step = np.full(nodes, steps + 1)
    for ends in edges:
        np.minimum.at(node_step, ends, edge_step)
    node_step[context] = 0
    chosen = np.setdiff1d(edges[:, order[:calibration_edges]], context)
    return _sequence(edges, node_step, edge_step, context, chosen, steps)


def scores_over_time(
    sequence: GraphSequence, score: Callable[[torch.Tensor], Any], steps: Ints | None = None
) -> dict[int, Floats]:
    """Scores [n, classes] on each G_t: ``score(edge_index)`` at step 0 and at ``steps`` (all).

    Nodes that are not there yet have no edges, so their rows affect no other and are never read.
    """
    wanted = range(1, sequence.steps + 1) if steps is None else steps.tolist()
    return {
        step: np.asarray(score(sequence.edge_index(step)), dtype=np.float64)
        for step in sorted({0, *wanted})
    }


@dataclass(frozen=True, slots=True)
class CoverageMatrix:
    """C of the paper: ``covered`` int8 [n, steps + 1] is 1, 0, or -1 where nothing is evaluated.

    ``size`` int64 [n, steps + 1] has the sizes of the sets, -1 likewise.
    """

    covered: NDArray[np.int8]
    size: Ints

    def at(self, times: Ints) -> NDArray[np.int8]:
        """Covered or not, for the nodes that are there when each is evaluated at its own step.

        The diagonal is ``at(sequence.node_step)``, column t ``at(np.full(n, t))``.
        """
        nodes = np.flatnonzero(times < self.covered.shape[1])
        covered = self.covered[nodes, times[nodes]]
        return np.asarray(covered[covered != NOT_EVALUATED], dtype=np.int8)


def coverage_matrix(
    sequence: GraphSequence,
    y: Ints,
    scores: dict[int, Floats],
    alpha: float,
    rule: MatrixRule,
    test_weight: float | Literal["exact"] = 1.0,
) -> CoverageMatrix:
    """The coverage matrix of one rule, at the steps that ``scores`` has.

    Args:
        sequence: the graph sequence.
        y: true classes [n].
        scores: step -> scores [n, classes] on G_step; step 0 is what naive calibrates on.
        alpha: share of nodes that may be missed.
        rule: "node" (NodeEx), "edge" (EdgeEx: weights 1 / deg on G_step), or "naive" (the
            threshold of step 0 for ever).
        test_weight: EdgeEx only; "exact" is each node's own 1 / deg on G_step.
    """
    shape = (len(y), sequence.steps + 1)
    covered, size = np.full(shape, NOT_EVALUATED, np.int8), np.full(shape, NOT_EVALUATED, np.int64)
    for step in sorted(set(scores) - {0}):
        nodes = np.flatnonzero(sequence.evaluated & (sequence.node_step <= step))
        limit = _threshold(sequence, y, scores, alpha, rule, test_weight, step, nodes)
        sets = prediction_sets(scores[step][nodes], limit)
        covered[nodes, step] = sets[np.arange(len(nodes)), y[nodes]]
        size[nodes, step] = sets.sum(axis=1)
    return CoverageMatrix(covered, size)


def _threshold(
    sequence: GraphSequence,
    y: Ints,
    scores: dict[int, Floats],
    alpha: float,
    rule: MatrixRule,
    test_weight: float | Literal["exact"],
    step: int,
    nodes: Ints,
) -> Floats:
    known = sequence.calibration
    true_scores = scores[0 if rule == "naive" else step][known, y[known]]
    if rule != "edge":
        return threshold(true_scores, alpha)
    degrees = sequence.degrees(step)
    weight = edge_weights(degrees[nodes]) if test_weight == "exact" else test_weight
    return threshold(true_scores, alpha, edge_weights(degrees[known]), weight)


def _in_steps(arrivals: int, steps: int) -> Ints:
    """Steps 1 .. steps for so many arrivals in order, in groups as equal as can be."""
    return 1 + np.arange(arrivals, dtype=np.int64) * steps // max(arrivals, 1)


def _sequence(
    edges: Ints, node_step: Ints, edge_step: Ints, context: Ints, chosen: Ints, steps: int
) -> GraphSequence:
    evaluated = np.ones(len(node_step), dtype=bool)
    evaluated[context] = False
    evaluated[chosen] = False
    return GraphSequence(edges, node_step, edge_step, np.sort(chosen), evaluated, steps)
