"""A network's outputs if a node lacked some neighbours, or a column said nothing: exact.

Each question is a pass over the graph with those relationships taken away, or with the column at
its neutral value. The pass computes what the change touches and takes the rest from the passes
before, so a question costs what a small change of the graph costs.

    what_if = WhatIf(plan, edges, nodes, features)
    logits = what_if.outputs(Question(node=7, without=(3,)), rows)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference import InferenceGraph, InferencePlan, empty_tables, forward
from ringfence.models.inference.graph import AlteredFeatures, RemovedEntries, graph_of, incoming

__all__ = ["Question", "WhatIf", "neighbours_of", "without_neighbours"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    """What if ``node`` lacked the neighbours ``without`` and said nothing in ``blank``?"""

    node: int
    without: tuple[int, ...] = ()
    blank: tuple[int, ...] = ()


class WhatIf:
    """A graph that is asked the same kind of question many times.

    Args:
        plan: of the network.
        edges: as the network sees them, int64 [2, E].
        nodes: how many there are.
        features: float32 [nodes, d], an array or a mapped file.
        neutral: float32 [d], what a blank column has; the mean of the training nodes says nothing.
    """

    def __init__(
        self, plan: InferencePlan, edges: Ints, nodes: int, features: Any, neutral: Float32s
    ) -> None:
        self.plan, self.features, self.neutral = plan, features, neutral
        self.graph = graph_of(edges, nodes, undirected=False)
        self._changed = np.zeros(nodes, np.int64)
        self._tables = empty_tables(plan, nodes)
        self._touched: tuple[int, ...] = ()
        self._altered = AlteredFeatures()
        self._blank: tuple[int, tuple[int, ...]] = (-1, ())
        self._version = 0

    def graph_for(self, question: Question | None) -> InferenceGraph:
        """Return the graph of a question; the unchanged one for None."""
        self._version += 1
        without = question.without if question else ()
        node = question.node if question else -1
        touched = (node, *without) if without else ()
        for row in {*touched, *self._touched}:
            self._changed[row] = self._version
        self._touched = touched
        blank = (node, question.blank) if question and question.blank else (-1, ())
        if blank != self._blank:
            rows = sorted({row for row in (blank[0], self._blank[0]) if row >= 0})
            versions = np.full(len(rows), self._version, np.int64)
            self._altered = AlteredFeatures(np.array(rows, np.int64), versions)
            self._blank = blank
        removed = without_neighbours(self.graph, node, without) if without else RemovedEntries()
        return replace(
            self.graph,
            removed=removed,
            changed=self._changed,
            version=self._version,
            altered=self._altered,
        )

    def outputs_on(self, graph: InferenceGraph, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` on the graph that `graph_for` gave last."""
        node, columns = self._blank
        features = self.features
        if columns:
            features = _Blanked(self.features, node, columns, self.neutral)
        return forward(self.plan, graph, features, rows, self._tables).logits

    def outputs(self, question: Question | None, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` [m, classes], if it were so."""
        return self.outputs_on(self.graph_for(question), rows)


class _Blanked:
    """Features with some columns of one row at their neutral values; nothing is copied."""

    def __init__(
        self, features: Any, row: int, columns: tuple[int, ...], neutral: Float32s
    ) -> None:
        self._features, self._row = features, row
        self._own = np.array(features[np.array([row])][0], np.float32)
        self._own[list(columns)] = neutral[list(columns)]

    def __len__(self) -> int:
        return len(self._features)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return (len(self._features), len(self._own))

    def __getitem__(self, rows: Any) -> Float32s:
        places = np.arange(len(self._features))[rows]
        taken = np.array(self._features[rows], np.float32)
        taken[places == self._row] = self._own
        return taken


def neighbours_of(graph: InferenceGraph, node: int) -> Ints:
    """Return the nodes that ``node`` hears, ascending.

    >>> neighbours_of(graph_of(np.array([[0, 4, 2], [2, 2, 1]]), nodes=5, undirected=False), 2)
    array([0, 4])
    """
    return incoming(graph, np.array([node])).sources.astype(np.int64)


def without_neighbours(graph: InferenceGraph, node: int, others: tuple[int, ...]) -> RemovedEntries:
    """Return what is taken away where ``node`` and ``others`` have no relationship.

    ``graph`` has neither a late part nor removed entries, as `graph_of` makes it.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for one, near in ((node, others), *((other, (node,)) for other in others)):
        first, last = int(graph.offsets[one]), int(graph.offsets[one + 1])
        inside = np.isin(graph.others[first:last], near)
        places = np.flatnonzero(inside) + first
        found[one] = [(int(graph.others[at]), int(graph.codes[at])) for at in places]
    nodes = sorted(one for one, entries in found.items() if entries)
    entries = [entry for one in nodes for entry in found[one]]
    return RemovedEntries(
        np.array(nodes, np.int64),
        np.append(0, np.cumsum([len(found[one]) for one in nodes])).astype(np.int64),
        np.array([other for other, _ in entries], np.int32),
        np.array([code for _, code in entries], np.uint8),
    )
