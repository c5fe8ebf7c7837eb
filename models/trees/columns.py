"""The columns that trees read: a node's own, how many neighbours it has, and their means.

Columns stand by channel of the schema into the classified label: a relationship type with a
direction. Counts stop at the node's own creation time where nodes have times: a node keeps its
counts when later nodes join it. Neighbours of the classified label are counted only where the
version says so (`CountRule`). Means are those of the graph as it is now. One row needs
nothing but its neighbours, so columns are made for the rows that are wanted and for no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.kernels.typed import mean_rows
from ringfence.models.inference.several_labels.graph import TypedGraph, list_channel
from ringfence.models.schema import ALWAYS, CLASSIFIED, Channel, TypedSchema

__all__ = [
    "ColumnInputs",
    "CountRule",
    "column_names",
    "count_table",
    "encoded_columns",
    "neighbour_table",
    "tree_columns",
]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
EncodeRows = Callable[[int, Ints], Float32s]
"""A label and some of its rows to their encoded columns [n, d]."""
CountRows = Callable[[Ints], Float32s]


@dataclass(frozen=True, slots=True)
class CountRule:
    """Which neighbours count.

    times int64 [nodes]: creation times, `ALWAYS` for what has none: what is later than the node
    itself does not count; None where nodes have no times, then all do. classified: whether
    neighbours of the classified label are counted: how many there are depends on a node's age.
    """

    times: Ints | None = None
    classified: bool = True

    def counts_label(self, label: int) -> bool:
        """Whether neighbours of a label are counted."""
        return self.classified or label != CLASSIFIED


@dataclass(frozen=True, slots=True)
class ColumnInputs:
    """What columns are made of.

    encode: encoded rows of a label. seen bool [nodes]: the neighbours that are there; None: all of
    them. count_related: how many relationships with columns classified rows have, per relation and
    direction that the rule counts [n, k].
    """

    graph: TypedGraph
    encode: EncodeRows
    rule: CountRule = CountRule()
    seen: NDArray[np.bool_] | None = None
    count_related: CountRows | None = None


def encoded_columns(
    graph: TypedGraph,
    features: Sequence[Float32s],
    rule: CountRule,
    count_related: CountRows | None = None,
) -> ColumnInputs:
    """Return inputs whose encoded rows stand by label [n_label, d], in the order of rows."""

    def encode(label: int, rows: Ints) -> Float32s:
        return features[label][graph.places[rows]]

    return ColumnInputs(graph, encode, rule, count_related=count_related)


def tree_columns(inputs: ColumnInputs, rows: Ints) -> Float32s:
    """Return own columns, then per channel a count and means, of classified rows [n, columns].

    Counts of relationships with columns stand last.
    """
    parts = [inputs.encode(CLASSIFIED, rows), neighbour_table(inputs, rows)]
    if inputs.count_related is not None:
        parts.append(inputs.count_related(rows))
    return np.concatenate(parts, axis=1)


def neighbour_table(inputs: ColumnInputs, rows: Ints) -> Float32s:
    """Return counts and means of the neighbours; NaN means where there is no neighbour."""
    parts = [np.empty((len(rows), 0), np.float32)]
    for channel in _incoming(inputs.graph.schema):
        near = _present(list_channel(inputs.graph, channel, rows), inputs.seen)
        if inputs.rule.counts_label(channel.source):
            parts.append(_counts(near, inputs.rule.times)[:, None])
        parts.append(_means(inputs, channel, near))
    return np.concatenate(parts, axis=1)


def count_table(inputs: ColumnInputs, rows: Ints) -> Float32s:
    """Return the counts alone: by channel, then of relationships with columns [n, counts]."""
    parts = [np.empty((len(rows), 0), np.float32)]
    for channel in _incoming(inputs.graph.schema):
        if inputs.rule.counts_label(channel.source):
            near = _present(list_channel(inputs.graph, channel, rows), inputs.seen)
            parts.append(_counts(near, inputs.rule.times)[:, None])
    if inputs.count_related is not None:
        parts.append(inputs.count_related(rows))
    return np.concatenate(parts, axis=1)


def column_names(schema: TypedSchema, names: Sequence[Sequence[str]], rule: CountRule) -> list[str]:
    """Return the names of the columns in their order; ``names`` are the encoded ones by label.

    >>> from ringfence.models.schema import Relation
    >>> schema = TypedSchema(("Order", "Shop"), (Relation(0, "AT", 1),))
    >>> column_names(schema, [["amount"], ["age"]], CountRule())
    ['amount', 'rev_AT Shop: count', 'rev_AT Shop: mean age']
    """
    columns = list(names[CLASSIFIED])
    for channel in _incoming(schema):
        front = f"{channel.name} {schema.labels[channel.source]}: "
        columns += [f"{front}count"] if rule.counts_label(channel.source) else []
        columns += [f"{front}mean {name}" for name in names[channel.source]]
    return columns


def _incoming(schema: TypedSchema) -> list[Channel]:
    return [channel for channel in schema.channels if channel.target == CLASSIFIED]


def _present(near: InNeighbours, seen: NDArray[np.bool_] | None) -> InNeighbours:
    """Return the neighbours that are seen."""
    if seen is None:
        return near
    there = seen[near.sources]
    offsets = np.append(0, np.cumsum(there))[near.offsets]
    return InNeighbours(near.rows, offsets, near.sources[there])


def _counts(near: InNeighbours, times: Ints | None) -> Float32s:
    """How many neighbours each row has that are not later than itself [rows]."""
    counts = near.counts()
    if times is None:
        return counts.astype(np.float32)
    here = np.repeat(np.arange(len(near.rows)), counts)
    born = times[near.rows][here]
    counted = here[(times[near.sources] <= born) | (born == ALWAYS)]
    return np.bincount(counted, minlength=len(near.rows)).astype(np.float32)


def _means(inputs: ColumnInputs, channel: Channel, near: InNeighbours) -> Float32s:
    """The mean of each column over the neighbours, summed in float64 in the order of rows."""
    marks = np.zeros(inputs.graph.size, np.bool_)
    marks[near.sources] = True
    sources = np.flatnonzero(marks)
    places = np.empty(inputs.graph.size, np.int64)
    places[sources] = np.arange(len(sources))
    values = np.ascontiguousarray(inputs.encode(channel.source, sources), np.float32)
    means = np.empty((len(near.rows), values.shape[1]), np.float32)
    mean_rows(0, len(near.rows), near.offsets, near.sources, places, values, means)
    means[near.counts() == 0] = np.nan
    return means
