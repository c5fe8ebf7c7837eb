"""Wanted rows with their incoming neighbours, for scores that use both.

Neighbour diffusion (DAPS) mixes a node's scores with those of its neighbours. So outputs are wanted
at the union of both; `models.scores.diffusion` mixes the scores of its rows.

    near = neighbourhood(graph, wanted)
    outputs = forward(plan, graph, features, near.rows, tables).logits
    scores = aps(softmax64(outputs), u_of(near.rows))
    diffused = diffuse_scores(scores, near.places, near.offsets, near.neighbours, diffusion)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InferenceGraph, in_neighbours
from ringfence.models.inference.input_checks import check_wanted

__all__ = ["Neighbourhood", "neighbourhood"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Rows of a graph, and the places of wanted rows and of their neighbours among them.

    rows int64 [k]: wanted rows and their neighbours, ascending, each once · places int64 [m]: where
    each wanted row stands in ``rows`` · the incoming neighbours of wanted row i stand there at
    ``neighbours[offsets[i] : offsets[i + 1]]``, in ascending order.
    """

    rows: Ints
    places: Ints
    offsets: Ints
    neighbours: Ints


def neighbourhood(
    graph: InferenceGraph, wanted: Ints, types: Sequence[int] | None = None
) -> Neighbourhood:
    """Return ``wanted`` [m] and their incoming neighbours; a row may be wanted more than once.

    types: relationship types that make neighbours; None for all.

    >>> from ringfence.models.inference.graph import graph_of
    >>> near = neighbourhood(graph_of(np.array([[0, 4], [2, 2]]), nodes=5), np.array([2, 1]))
    >>> near.rows, near.places, near.offsets, near.neighbours
    (array([0, 1, 2, 4]), array([2, 1]), array([0, 2, 2]), array([0, 3]))
    """
    chosen = np.ascontiguousarray(wanted, np.int64)
    check_wanted(chosen, graph)
    near = in_neighbours(graph, chosen, types)
    marks = np.zeros(graph.size, np.bool_)
    marks[chosen] = True
    marks[near.sources] = True
    rows = np.flatnonzero(marks)
    place = np.empty(graph.size, np.int64)
    place[rows] = np.arange(len(rows))
    return Neighbourhood(rows, place[chosen], near.offsets, place[near.sources])
