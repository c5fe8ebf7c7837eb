"""A network's exact outputs if a node lacked some neighbours, or a column were neutral.

Each question is a pass over the graph with those relationships taken away, or with the column at
its neutral value. The pass computes what the change touches and takes the rest from the passes
before, so a question costs what a small change of the graph costs.

    what_if = WhatIf(plan, graph, features, neutral)
    logits = what_if.outputs(Question(node=7, without=((3, ANY),)), rows)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.models.explanation.counterfactual_query import (
    Question,
    cut_relationships,
    touched_rows,
)
from ringfence.models.inference import InferenceGraph, InferencePlan, empty_tables, forward
from ringfence.models.inference.graph import AlteredFeatures, in_neighbours

__all__ = ["Counterfactual", "WhatIf", "neighbours_of"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


class Counterfactual(Protocol):
    """A network on a graph that answers counterfactual queries: `WhatIf`, `TypedWhatIf`."""

    def ask(self, question: Question | None) -> InferenceGraph:
        """Apply a question to the graph, undo it for None; return what scores read."""

    def outputs_now(self, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` [m, classes] on the graph of the last `ask`."""


class WhatIf:
    """Answers many questions about one graph.

    Args:
        plan: of the network.
        graph: relationships of one label.
        features: float32 [nodes, d], an array or a mapped file.
        neutral: float32 [d], the values of blank columns: the means of the training nodes.
    """

    def __init__(
        self, plan: InferencePlan, graph: InferenceGraph, features: Any, neutral: Float32s
    ) -> None:
        self.plan, self.features, self.neutral = plan, features, neutral
        self._changed = np.zeros(graph.size, np.int64)
        self.graph = replace(graph, changed=self._changed, version=0, altered=AlteredFeatures())
        self._now = self.graph
        self._tables = empty_tables(plan, graph.size)
        self._touched: set[int] = set()
        self._altered = AlteredFeatures()
        self._blank: tuple[int, tuple[int, ...]] = (-1, ())
        self._version = 0

    def ask(self, question: Question | None) -> InferenceGraph:
        """Apply a question to the graph; undo it for None."""
        self._version += 1
        touched = touched_rows(self.graph, question) if question else set()
        self._changed[list(touched | self._touched)] = self._version
        self._touched = touched
        blank = (question.node, question.blank) if question and question.blank else (-1, ())
        if blank != self._blank:
            rows = sorted({row for row in (blank[0], self._blank[0]) if row >= 0})
            versions = np.full(len(rows), self._version, np.int64)
            self._altered = AlteredFeatures(np.array(rows, np.int64), versions)
            self._blank = blank
        self._now = replace(
            cut_relationships(self.graph, question), version=self._version, altered=self._altered
        )
        return self._now

    def outputs_now(self, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` on the graph of the last `ask`."""
        node, columns = self._blank
        features = self.features
        if columns:
            features = _Blanked(self.features, node, columns, self.neutral)
        return forward(self.plan, self._now, features, rows, self._tables).logits

    def outputs(self, question: Question | None, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` [m, classes] under a question."""
        self.ask(question)
        return self.outputs_now(rows)


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
    """Return the nodes that ``node`` receives messages from, ascending.

    >>> from ringfence.models.inference.graph import graph_of
    >>> neighbours_of(graph_of(np.array([[0, 4, 2], [2, 2, 1]]), nodes=5, undirected=False), 2)
    array([0, 4])
    """
    return in_neighbours(graph, np.array([node])).sources.astype(np.int64)
