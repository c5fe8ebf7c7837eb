"""What a list compares new nodes with: reference nodes of known class, in the strata of the run.

A list is about nodes that have a trait: being of a class (`investigate`), or not being of it
(`clear`). A listed node without the trait is *wrong*. The reference nodes without the trait say how
high wrong nodes score; how many reference nodes have it says how many new ones do.

Ties are broken by a number that each node has from a keyed hash (`tie`), so that nodes of equal
score stand in a random order that nobody chose, reference nodes and new ones alike. Everything that
holds for continuous scores then holds with ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import Stratum

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScoredNodes:
    """Nodes as a list sees them: how much each looks like having the trait, and its tie number.

    score: higher has the trait more likely [n] · tie: uniform on [0, 1), orders equal scores [n].
    """

    score: Floats
    tie: Floats


@dataclass(frozen=True, slots=True)
class References:
    """Reference nodes: their scores, whether each is wrong for the list, and what it weighs.

    wrong: the node lacks the trait [n] · weight: how many nodes it stands for [n]; wrong nodes
    weigh at most 1, which a new node weighs.
    """

    nodes: ScoredNodes
    wrong: Bools
    weight: Floats


@dataclass(frozen=True, slots=True)
class Tail:
    """The references of a stratum in ascending order, and where its new nodes stand among them.

    wrong, every: weight of the wrong ones, and of all, from each place to the highest; 0 behind the
    last [n + 1] · due: rows of the new nodes [k] · place: how many references are below each [k].
    """

    wrong: Floats
    every: Floats
    due: Ints
    place: Ints


def fair_weights(classes: Ints, wrong_classes: Bools, fair_counts: Floats | None) -> Floats:
    """Return what reference nodes weigh, so that their classes stand in the shares of new nodes.

    A promise per class takes more of a rare class for calibration, and a window keeps more of it.
    `fair_counts` are classes of nodes that nobody chose by their class: all labelled ones.

    Args:
        classes: true classes of the references [n].
        wrong_classes: whether nodes of each class are wrong for the list [classes].
        fair_counts: nodes of each class [classes]; None: the references' own shares are fair.

    >>> classes = np.array([0, 0, 1, 1])  # as many of the rare class 1 as of class 0
    >>> fair_weights(classes, np.array([True, False]), np.array([89.0, 10.0])).round(4).tolist()
    [1.0, 1.0, 0.1667, 0.1667]
    """
    if fair_counts is None:
        return np.ones(len(classes))
    taken = np.bincount(classes, minlength=len(wrong_classes)).astype(np.float64)
    per_node = np.divide(fair_counts, taken, out=np.zeros_like(taken), where=taken > 0)
    wrong_taken = wrong_classes & (taken > 0)
    if wrong_taken.sum() == 1:  # exact: the share (N + 1) / (all + 1) of wrong nodes, see the docs
        place = int(np.flatnonzero(wrong_taken)[0])
        unit = (fair_counts[wrong_classes].sum() + 1) / (taken[place] + 1)
    else:
        unit = float(per_node[wrong_taken].max(initial=0.0)) or 1.0
    weights = per_node / unit
    if wrong_taken.sum() == 1:
        weights[wrong_classes] = 1.0
    return np.asarray(weights[classes], np.float64)


def rank_among(references: References, new: ScoredNodes, strata: Sequence[Stratum]) -> list[Tail]:
    """Return where the new nodes stand among the references of their strata.

    A new node of no stratum is in no tail: it has nothing to be compared with, and is on no list.
    """
    tails = []
    for stratum in strata:
        inside, due = stratum.calibration, stratum.due
        ordered = inside[_ascending(references.nodes, inside)]
        weight = references.weight[ordered]
        wrong = _sums_from(weight * references.wrong[ordered])
        place = _places(references.nodes, ordered, new, due)
        tails.append(Tail(wrong, _sums_from(weight), due, place))
    return tails


def _ascending(nodes: ScoredNodes, rows: Ints) -> Ints:
    return np.asarray(np.lexsort((nodes.tie[rows], nodes.score[rows])), np.int64)


def _places(known: ScoredNodes, ordered: Ints, new: ScoredNodes, due: Ints) -> Ints:
    """How many of the ordered references lie below each new node, by score and then by tie."""
    score = np.concatenate([known.score[ordered], new.score[due]])
    tie = np.concatenate([known.tie[ordered], new.tie[due]])
    is_new = np.concatenate([np.zeros(len(ordered)), np.ones(len(due))])
    order = np.lexsort((-is_new, tie, score))  # at full equality the reference counts as above
    below = np.cumsum(1 - is_new[order])
    places = np.empty(len(order), np.int64)
    places[order] = below
    return places[len(ordered) :]


def _sums_from(weights: Floats) -> Floats:
    """Sums of the weights from each place to the end; 0 behind it."""
    return np.append(np.cumsum(weights[::-1])[::-1], 0.0)
