"""The same questions to a network for several labels: `counterfactuals` for typed graphs.

A relationship type is a relation of the schema. A blank column is one of the node's raw columns: a
function of the caller's encodes the node without it, as a node that never had that property.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ringfence.models.explanation.question import Question, cut_relationships
from ringfence.models.inference import InferenceGraph
from ringfence.models.inference.typed import Kept, TypedGraph, TypedPlan, forward_typed
from ringfence.models.inference.typed.graph import list_channel
from ringfence.models.schema import CLASSIFIED

__all__ = ["TypedWhatIf", "neighbours_by_relation"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


class TypedWhatIf:
    """A typed graph that is asked the same kind of question many times.

    Args:
        plan: of the network.
        graph: all labels and relations.
        inner: the relationships inside the classified label, which scores look at.
        features: by label, encoded rows [n_label, d]; those of the classified label are changed
            while a blank column is asked about, so they must be the caller's own.
        encode_without: (row, raw columns to leave out) -> its encoded row [d].
    """

    def __init__(
        self,
        plan: TypedPlan,
        graph: TypedGraph,
        inner: InferenceGraph,
        features: Sequence[Float32s],
        encode_without: Callable[[int, tuple[int, ...]], Float32s],
    ) -> None:
        self.plan, self.graph, self.inner, self.features = plan, graph, inner, list(features)
        self._encode_without = encode_without
        self._sums = Kept()
        self._now = graph
        self._blank: tuple[int, Float32s] | None = None
        self._altered: set[int] = set()
        self._version = graph.relationships.version

    def ask(self, question: Question | None) -> InferenceGraph:
        """Change the graph as asked, back to itself for None; return its inner relationships."""
        self._restore()
        if question is not None and question.blank:
            place = int(self.graph.places[question.node])
            self._blank = question.node, np.array(self.features[CLASSIFIED][place])
            encoded = self._encode_without(question.node, question.blank)
            self.features[CLASSIFIED][place] = encoded
            self._altered.add(question.node)
        self._version += 1
        changed = cut_relationships(self.graph.relationships, question)
        changed = replace(changed, version=self._version)
        self._now = replace(self.graph, relationships=changed)
        return cut_relationships(self.inner, question)

    def outputs_now(self, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` on the graph of the last `ask`."""
        altered = np.array(sorted(self._altered), np.int64)
        found = forward_typed(self.plan, self._now, self.features, rows, self._sums, altered)
        self._altered.clear()
        if self._blank is not None:  # what is kept now knows the blank row
            self._altered.add(self._blank[0])
        return found.logits

    def outputs(self, question: Question | None, rows: Ints) -> Float32s:
        """Return the network's outputs at ``rows`` [m, classes], if it were so."""
        self.ask(question)
        return self.outputs_now(rows)

    def _restore(self) -> None:
        if self._blank is None:
            return
        row, values = self._blank
        self.features[CLASSIFIED][int(self.graph.places[row])] = values
        self._altered.add(row)
        self._blank = None


def neighbours_by_relation(graph: TypedGraph, node: int) -> list[tuple[int, int]]:
    """Return (neighbour, relation) of all that ``node`` hears, by relation, then row."""
    found: set[tuple[int, int]] = set()
    for channel in graph.schema.channels:
        if channel.target != graph.labels[node]:
            continue
        sources = list_channel(graph, channel, np.array([node])).sources.tolist()
        found |= {(channel.codes[0] >> 1, source) for source in sources}
    return [(other, relation) for relation, other in sorted(found)]
