"""Random subgraphs of a finished graph: averaged scores, or a vote of the sets they give.

On a graph that no longer grows, each test node v may be scored on K random induced subgraphs that
all hold v and the calibration nodes. In each of them v and the calibration nodes are exchangeable,
so each gives a valid set. Two ways to make one set of K keep the promise: average the scores of v
and of the calibration nodes over v's own K subgraphs, or include class y with probability
votes / K. The union of the K sets covers too much and their intersection too little; neither is
offered.

One forward pass serves many test nodes: in each of K rounds the test nodes are split at random into
groups, and a group is evaluated on the subgraph of calibration nodes, context and the group itself.
For each of its members the others are a uniformly random subset, which is all the theory requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.sets import p_values, prediction_sets, threshold

__all__ = ["Averaged", "Groups", "averaged_scores", "bernoulli_vote", "draw_groups", "votes"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Score = Callable[[Ints], Any]
"""Scores [k, classes] of k nodes, computed on the subgraph that those nodes induce."""


@dataclass(frozen=True, slots=True)
class Groups:
    """K rounds of groups: each round holds every row of ``test_nodes`` exactly once."""

    test_nodes: Ints
    rounds: tuple[tuple[Ints, ...], ...]


def draw_groups(test_nodes: Ints, *, count: int, size: int, seed: int) -> Groups:
    """``count`` (K) random splits of the test nodes into groups of about ``size``.

    >>> groups = draw_groups(np.array([10, 11, 12, 13]), count=2, size=2, seed=1)
    >>> [sorted(np.concatenate(r).tolist()) for r in groups.rounds]
    [[0, 1, 2, 3], [0, 1, 2, 3]]
    """
    nodes = np.asarray(test_nodes, dtype=np.int64)
    if count < 1 or size < 1 or len(np.unique(nodes)) != len(nodes):
        raise ValueError(
            f"{count} subgraphs per node, groups of {size}, {len(nodes)} test nodes of which "
            f"{len(np.unique(nodes))} are different; at least 1, 1, and each node once are needed"
        )
    rng, pieces = np.random.default_rng(seed), max(1, round(len(nodes) / size))
    return Groups(
        nodes,
        tuple(tuple(np.array_split(rng.permutation(len(nodes)), pieces)) for _ in range(count)),
    )


@dataclass(frozen=True, slots=True)
class Averaged:
    """Means over each test node's own K subgraphs.

    scores float64 [m, classes] of the test nodes · calibration float64 [m, n]: row v holds the
    calibration nodes' true-class scores averaged over the subgraphs of v.
    """

    scores: Floats
    calibration: Floats

    def p_values(self) -> Floats:
        """Conformal p-values [m, classes], each node against its own calibration row."""
        rows = [
            p_values(known, scores)
            for known, scores in zip(self.calibration, self.scores, strict=True)
        ]
        return np.array(rows).reshape(self.scores.shape)


def averaged_scores(
    score: Score,
    groups: Groups,
    calibration_nodes: Ints,
    calibration_classes: Ints,
    context: Ints | None = None,
) -> Averaged:
    """Scores averaged over each test node's K subgraphs.

    Args:
        score: scores [k, classes] of k nodes on the subgraph they induce, in their order.
        groups: from ``draw_groups``.
        calibration_nodes: in every subgraph.
        calibration_classes: their true classes [n].
        context: nodes that are in every subgraph besides, such as train and validation nodes.

    Memory: float64 [m, n] for m test and n calibration nodes.
    """
    rounds = list(_rounds(score, groups, calibration_nodes, calibration_classes, context))
    scores = np.mean([group.scores for group in rounds], axis=0)
    known = sum((group.calibration[group.group] for group in rounds), start=np.zeros(1))
    return Averaged(scores, known / len(rounds))


def votes(
    score: Score,
    groups: Groups,
    calibration_nodes: Ints,
    calibration_classes: Ints,
    alpha: float,
    context: Ints | None = None,
) -> Ints:
    """In how many of its K sets each class of each test node is, int64 [m, classes].

    Arguments as for ``averaged_scores``; ``alpha`` is the share of nodes that may be missed.
    """
    rounds = _rounds(score, groups, calibration_nodes, calibration_classes, context)
    return np.asarray(sum(_sets(group, alpha).astype(np.int64) for group in rounds))


def bernoulli_vote(votes: Ints, count: int, uniforms: Floats) -> NDArray[np.bool_]:
    """The final sets: class y of v is in with probability votes / K.

    The true class is then covered with the mean of the K coverages, so with 1 - alpha or more.

    Args:
        votes: int64 [m, classes], each 0 .. count.
        count: K.
        uniforms: [m, classes] in [0, 1), one per node and class, fixed for ever: from
            ``hashing.uniforms`` of node key and class.

    >>> bernoulli_vote(np.array([[4, 2, 0]]), 4, np.array([[0.9, 0.6, 0.0]])).tolist()
    [[True, False, False]]
    """
    if votes.shape != uniforms.shape or votes.min(initial=0) < 0 or votes.max(initial=0) > count:
        raise ValueError(
            f"votes {list(votes.shape)} in {votes.min(initial=0)} to {votes.max(initial=0)} of "
            f"{count}, uniforms {list(uniforms.shape)}; equal shapes and 0 to {count} are needed"
        )
    return np.asarray(uniforms * count < votes)


@dataclass(frozen=True, slots=True)
class _Round:
    """scores [m, classes] · calibration [groups, n] true-class scores · group [m] of each node."""

    scores: Floats
    calibration: Floats
    group: Ints


def _rounds(
    score: Score, groups: Groups, calibration_nodes: Ints, classes: Ints, context: Ints | None
) -> Iterator[_Round]:
    both = np.intersect1d(groups.test_nodes, calibration_nodes)
    if len(both):
        raise ValueError(
            f"{len(both)} nodes are both test and calibration nodes, such as node {both[0]}; a "
            "node is one or the other"
        )
    n, always = len(calibration_nodes), np.empty(0, np.int64) if context is None else context
    for one_round in groups.rounds:
        scores = [
            np.asarray(
                score(np.concatenate([calibration_nodes, groups.test_nodes[rows], always])),
                dtype=np.float64,
            )
            for rows in one_round
        ]
        of_round = [part[n : n + len(rows)] for part, rows in zip(scores, one_round, strict=True)]
        place = np.argsort(np.concatenate(one_round))
        yield _Round(
            scores=np.concatenate(of_round)[place],
            calibration=np.stack([part[np.arange(n), classes] for part in scores]),
            group=np.repeat(np.arange(len(one_round)), [len(rows) for rows in one_round])[place],
        )


def _sets(group: _Round, alpha: float) -> NDArray[np.bool_]:
    limits = np.array([float(threshold(known, alpha)) for known in group.calibration])
    return np.asarray(prediction_sets(group.scores, limits[group.group]))
