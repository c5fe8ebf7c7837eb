"""A counterfactual query about a node: without some relationships, with some columns blanked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InferenceGraph, RemovedEntries

__all__ = ["ANY", "Cut", "Question", "cut_relationships", "touched_rows"]

Ints = NDArray[np.int64]
ANY = -1
"""In the place of a neighbour or of a relationship type: all of them."""

Cut = tuple[int, int]
"""A neighbour's row and a relationship type; `ANY` for all."""


@dataclass(frozen=True, slots=True)
class Question:
    """What if ``node`` lacked the relationships ``without`` and had neutral values in ``blank``?

    >>> Question(7, ((3, ANY),)) + Question(7, blank=(2,))
    Question(node=7, without=((3, -1),), blank=(2,))
    """

    node: int
    without: tuple[Cut, ...] = ()
    blank: tuple[int, ...] = ()

    def __add__(self, other: Question) -> Question:
        """Both at once; questions about one node."""
        return Question(self.node, self.without + other.without, self.blank + other.blank)


def cut_relationships(graph: InferenceGraph, question: Question | None) -> InferenceGraph:
    """Return the graph without the relationships that a question takes away, at both ends.

    >>> from ringfence.models.inference.graph import graph_of, neighbour_counts
    >>> graph = graph_of(np.array([[0, 2, 2], [1, 1, 3]]), nodes=4)
    >>> changed = cut_relationships(graph, Question(1, ((2, ANY),)))
    >>> neighbour_counts(changed, np.arange(4)).tolist()
    [1, 1, 1, 1]
    """
    if question is None or not question.without:
        return graph
    late_nodes = np.repeat(graph.late_nodes, np.diff(graph.late_offsets))
    return replace(
        _cut_late(graph, late_nodes, question),
        removed=_with_removed(graph.removed, *_base_entries(graph, question)),
    )


def touched_rows(graph: InferenceGraph, question: Question) -> set[int]:
    """Return the rows whose relationships a question changes."""
    if not question.without:
        return set()
    rows = _base_entries(graph, question)[0].tolist()
    late_nodes = np.repeat(graph.late_nodes, np.diff(graph.late_offsets))
    gone = _late_gone(graph, late_nodes, question)
    return {*rows, *late_nodes[gone].tolist(), *graph.late_others[gone].tolist()}


def _base_entries(graph: InferenceGraph, question: Question) -> tuple[Ints, Ints, Ints]:
    """Node, other end and code of the base's entries that are removed, at both ends."""
    node = question.node
    if node + 1 >= len(graph.offsets):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing
    part = slice(int(graph.offsets[node]), int(graph.offsets[node + 1]))
    gone = _matches(graph.others[part], graph.codes[part], question.without)
    others = graph.others[part][gone].astype(np.int64)
    codes = graph.codes[part][gone].astype(np.int64)
    here = np.full(len(others), node, np.int64)
    return (
        np.concatenate([here, others]),
        np.concatenate([others, here]),
        np.concatenate([codes, codes ^ 1]),
    )


def _matches(
    others: NDArray[np.integer], codes: NDArray[np.integer], cuts: tuple[Cut, ...]
) -> NDArray[np.bool_]:
    matches = np.zeros(len(others), np.bool_)
    for other, kind in cuts:
        matches |= ((others == other) | (other == ANY)) & ((codes >> 1 == kind) | (kind == ANY))
    return matches


def _late_gone(graph: InferenceGraph, late_nodes: Ints, question: Question) -> NDArray[np.bool_]:
    here = (late_nodes == question.node) & _matches(
        graph.late_others, graph.late_codes, question.without
    )
    there = (graph.late_others == question.node) & _matches(
        late_nodes, graph.late_codes, question.without
    )
    gone: NDArray[np.bool_] = here | there
    return gone


def _cut_late(graph: InferenceGraph, late_nodes: Ints, question: Question) -> InferenceGraph:
    gone = _late_gone(graph, late_nodes, question)
    if not gone.any():
        return graph
    kept = np.append(0, np.cumsum(~gone))
    return replace(
        graph,
        late_offsets=kept[graph.late_offsets],
        late_others=graph.late_others[~gone],
        late_codes=graph.late_codes[~gone],
    )


def _with_removed(before: RemovedEntries, nodes: Ints, others: Ints, codes: Ints) -> RemovedEntries:
    """Entries that were removed already, and more; each once, sorted as in the base."""
    if not len(nodes):
        return before
    old = np.repeat(before.nodes, np.diff(before.offsets))
    entries = np.stack(
        [
            np.concatenate([old, nodes]),
            np.concatenate([before.others.astype(np.int64), others]),
            np.concatenate([before.codes.astype(np.int64), codes]),
        ]
    )
    entries = np.unique(entries, axis=1)  # by columns, in the order node, other, code
    rows, counts = np.unique(entries[0], return_counts=True)
    return RemovedEntries(
        rows,
        np.append(0, np.cumsum(counts)).astype(np.int64),
        entries[1].astype(np.int32),
        entries[2].astype(np.uint8),
    )
