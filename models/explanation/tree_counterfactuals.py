"""Counterfactuals for boosted trees: the node's columns without a neighbour or a value, again.

A node's outputs depend on its own columns and its neighbours alone, so a question is answered by
making the columns of the wanted rows anew on the changed graph: exact, as a pass would compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ringfence.models.explanation.counterfactual_query import Question, cut_relationships
from ringfence.models.inference import InferenceGraph
from ringfence.models.trees.columns import ColumnInputs, CountRows
from ringfence.models.trees.ensemble import TreeEnsemble
from ringfence.models.trees.forward import forward_trees

__all__ = ["TreeWhatIf"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


class TreeWhatIf:
    """Answers many questions about one graph.

    Args:
        trees: of the version.
        inputs: what its columns are made of, on the graph as it is.
        inner: the relationships inside the classified label, which scores use.
        classes: how many outputs there are.
        encode_under: question -> the encoded rows [d] that it changes, by row.
        count_under: question -> how many relationships with columns rows have under it.
    """

    def __init__(
        self,
        trees: TreeEnsemble,
        inputs: ColumnInputs,
        inner: InferenceGraph,
        classes: int,
        encode_under: Callable[[Question], Mapping[int, Float32s]],
        count_under: Callable[[Question], CountRows] | None = None,
    ) -> None:
        self.trees, self.inputs, self.inner, self.classes = trees, inputs, inner, classes
        self._encode_under, self._count_under = encode_under, count_under
        self._now = inputs

    def ask(self, question: Question | None) -> InferenceGraph:
        """Apply a question to the graph, undo it for None; return its inner relationships."""
        graph = self.inputs.graph
        relationships = cut_relationships(graph.relationships, question)
        self._now = replace(self.inputs, graph=replace(graph, relationships=relationships))
        if question is not None and (encoded := self._encode_under(question)):

            def encode(label: int, rows: Ints) -> Float32s:
                values = self.inputs.encode(label, rows)
                for row, changed in encoded.items():
                    if graph.labels[row] == label:
                        values[rows == row] = changed
                return values

            self._now = replace(self._now, encode=encode)
        if question is not None and self._count_under is not None:
            self._now = replace(self._now, count_related=self._count_under(question))
        return cut_relationships(self.inner, question)

    def outputs_now(self, rows: Ints) -> Float32s:
        """Return the outputs at ``rows`` [m, classes] on the graph of the last `ask`."""
        return forward_trees(self.trees, self._now, rows, self.classes)
