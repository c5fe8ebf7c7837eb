"""A graph of several labels for inference: one row space, and a label per row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import (
    InferenceGraph,
    InNeighbours,
    LateEntries,
    entry_lists,
    find_late_entries,
    listed_through,
)
from ringfence.models.inference.kernels.typed import hash_late_lists
from ringfence.models.schema import Channel, TypedSchema

__all__ = ["TypedGraph", "hash_late_entries", "list_channel", "list_receivers", "typed_graph"]

Ints = NDArray[np.int64]
CODES = 256


@dataclass(frozen=True, slots=True)
class TypedGraph:
    """Relationships of all rows, and the label of each.

    labels int [n]: places in the schema. places int64 [n]: of each row among those of its label, in
    the order of rows; rows that join later change none of them. counts: rows by label.
    """

    relationships: InferenceGraph
    schema: TypedSchema
    labels: NDArray[np.integer]
    places: Ints
    counts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.relationships.size


def typed_graph(
    relationships: InferenceGraph, schema: TypedSchema, labels: NDArray[np.integer]
) -> TypedGraph:
    """Return the graph, its rows numbered within their labels.

    Args:
        relationships: as the mirror has them; a relation's place in the schema is its type.
        schema: labels and relations.
        labels: the label of each row [n].
    """
    if len(labels) != relationships.size:
        raise ValueError(f"{len(labels)} labels for {relationships.size} rows; one each is needed")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(schema.labels):
        raise ValueError(f"labels {labels.min()} to {labels.max()} of {len(schema.labels)}")
    places = np.empty(len(labels), np.int64)
    counts = []
    for label in range(len(schema.labels)):
        rows = np.flatnonzero(labels == label)
        places[rows] = np.arange(len(rows))
        counts.append(len(rows))
    return TypedGraph(relationships, schema, labels, places, tuple(counts))


def list_channel(
    graph: TypedGraph,
    channel: Channel,
    rows: Ints,
    least: Ints | None = None,
    late: LateEntries | None = None,
) -> InNeighbours:
    """Return the sources of ``rows``, rows of the channel's target, in ascending order.

    least int64 [rows]: of each row only the sources from this number on.
    """
    return listed_through(graph.relationships, rows, _taken(channel.codes), least, late)


def hash_late_entries(
    graph: InferenceGraph, rows: Ints, least: Ints, late: LateEntries | None = None
) -> NDArray[np.uint64]:
    """Return a hash of what was added to and removed from each row's base list [rows].

    Two graphs with the same base have the same list of a row where its hashes are the same.
    Entries of nodes from ``least`` on are left out.
    """
    late = find_late_entries(graph, rows) if late is None else late
    hashes = np.empty(len(rows), np.uint64)
    hash_late_lists(entry_lists(graph), late.added, late.removed, least, hashes)
    return hashes


def list_receivers(graph: TypedGraph, channel: Channel, rows: Ints) -> Ints:
    """Return the rows that receive messages of any of ``rows`` through the channel."""
    takes = _taken([code ^ 1 for code in channel.codes])
    receivers = listed_through(graph.relationships, rows, takes).sources
    return np.unique(receivers).astype(np.int64)


def _taken(codes: Iterable[int]) -> NDArray[np.bool_]:
    takes = np.zeros(CODES, np.bool_)
    takes[list(codes)] = True
    return takes
