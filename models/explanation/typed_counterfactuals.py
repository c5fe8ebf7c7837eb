"""Counterfactuals for networks over several labels, as `counterfactuals` for one.

A relationship type is a relation of the schema. A blank column is one of the node's raw columns: a
function of the caller's encodes the node without it, as a node that never had that property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ringfence.models.explanation.counterfactual_query import Question, cut_relationships
from ringfence.models.inference import InferenceGraph
from ringfence.models.inference.several_labels import (
    LayerCache,
    TypedGraph,
    TypedPlan,
    forward_typed,
)
from ringfence.models.inference.several_labels.graph import list_channel

__all__ = ["TypedWhatIf", "neighbours_by_relation"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


class TypedWhatIf:
    """Answers many questions about one typed graph.

    Args:
        plan: of the network.
        graph: all labels and relations.
        inner: the relationships inside the classified label, which scores use.
        features: by label, encoded rows [n_label, d]; they are changed while a question has blank
            columns, so pass a copy.
        encode_under: question -> the encoded rows [d] that it changes, by row.
    """

    def __init__(
        self,
        plan: TypedPlan,
        graph: TypedGraph,
        inner: InferenceGraph,
        features: Sequence[Float32s],
        encode_under: Callable[[Question], Mapping[int, Float32s]],
    ) -> None:
        self.plan, self.graph, self.inner, self.features = plan, graph, inner, list(features)
        self._encode_under = encode_under
        self._layer_cache = LayerCache()
        self._now = graph
        self._before: dict[int, Float32s] = {}
        self._altered: set[int] = set()
        self._version = graph.relationships.version

    def ask(self, question: Question | None) -> InferenceGraph:
        """Apply a question to the graph, undo it for None; return its inner relationships."""
        self._restore()
        encoded = {} if question is None else self._encode_under(question)
        for row, values in encoded.items():
            self._before[row] = np.array(self._features_of(row))
            self._features_of(row)[:] = values
            self._altered.add(row)
        self._version += 1
        changed = cut_relationships(self.graph.relationships, question)
        changed = replace(changed, version=self._version)
        self._now = replace(self.graph, relationships=changed)
        return cut_relationships(self.inner, question)

    def outputs_now(self, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` on the graph of the last `ask`."""
        altered = np.array(sorted(self._altered), np.int64)
        result = forward_typed(
            self.plan, self._now, self.features, rows, self._layer_cache, altered
        )
        self._altered.clear()
        self._altered.update(self._before)  # the cache now has the rows of the question
        return result.logits

    def outputs(self, question: Question | None, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` [m, classes] under a question."""
        self.ask(question)
        return self.outputs_now(rows)

    def _restore(self) -> None:
        for row, values in self._before.items():
            self._features_of(row)[:] = values
            self._altered.add(row)
        self._before.clear()

    def _features_of(self, row: int) -> Float32s:
        """A view of the encoded columns of a row."""
        rows: Float32s = self.features[int(self.graph.labels[row])]
        view: Float32s = rows[int(self.graph.places[row])]
        return view


def neighbours_by_relation(graph: TypedGraph, node: int) -> list[tuple[int, int]]:
    """Return (neighbour, relation) of all messages to ``node``, by relation, then row."""
    heard: set[tuple[int, int]] = set()
    for channel in graph.schema.channels:
        if channel.target != graph.labels[node]:
            continue
        sources = list_channel(graph, channel, np.array([node])).sources.tolist()
        heard |= {(channel.codes[0] >> 1, source) for source in sources}
    return [(other, relation) for relation, other in sorted(heard)]
