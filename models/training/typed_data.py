"""A part of a typed graph in the arrays that training takes: columns, edges, times.

Rows stand in the order that the caller gives (that of keys), edges are sorted by receiver and
source: the same graph gives the same arrays, in whatever order it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ringfence.models.networks.typed_sage import TypedSAGE
from ringfence.models.schema import ALWAYS, CLASSIFIED, Channel, TypedSchema
from ringfence.models.training.typed_blocks import TypedBlock, sample_typed_block, timed_graph

__all__ = ["ALWAYS", "TypedData", "TypedTimes", "select_typed"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Tensors = tuple[dict[str, Tensor], dict[tuple[str, str, str], Tensor]]


@dataclass(frozen=True, slots=True)
class TypedTimes:
    """When things came to be, in nanoseconds; `ALWAYS` for what has no time.

    nodes: by label [n_label]. edges: by channel [E]. columns: by label, when a node's columns took
    their values [n_label]: a node that is older than its columns has none of them yet.
    """

    nodes: tuple[Ints, ...]
    edges: tuple[Ints, ...]
    columns: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class TypedData:
    """Columns by label [n_label, width] and edges by channel [2, E] (source and receiver).

    `blank` by label is the row of a node none of whose columns are known [width].
    """

    schema: TypedSchema
    features: tuple[Float32s, ...]
    edges: tuple[Ints, ...]
    times: TypedTimes
    blank: tuple[Float32s, ...] = field(default=())

    @property
    def classified(self) -> int:
        """How many nodes of the classified label there are."""
        return len(self.features[CLASSIFIED])

    @property
    def edge_count(self) -> int:
        """Number of edges of all channels."""
        return sum(pair.shape[1] for pair in self.edges)

    def tensors(self) -> Tensors:
        """Return x by label and edge_index by edge type, as `HeteroData` names them."""
        return _named_tensors(
            self.schema, [np.ascontiguousarray(rows) for rows in self.features], self.edges
        )

    def tensors_for(self, network: torch.nn.Module) -> tuple[Any, ...]:
        """Return the tensors, and for TypedSAGE the means that are the same in every epoch."""
        x, edges = self.tensors()
        if isinstance(network, TypedSAGE):
            return x, edges, network.first_means(x, edges)
        return x, edges

    def block_sampler(
        self, fanouts: Sequence[int | None]
    ) -> Callable[[Ints, np.random.Generator], Callable[[], Tensors]]:
        """Return a sampler of time-safe blocks; `fanouts` count neighbours per channel, by hop."""
        graph = timed_graph(self)

        def draw(seeds: Ints, rng: np.random.Generator) -> Callable[[], Tensors]:
            block = sample_typed_block(graph, seeds, fanouts, rng)
            return lambda: self._block_tensors(block)

        return draw

    def _block_tensors(self, block: TypedBlock) -> Tensors:
        """The tensors of a block; rows whose columns are later than their seed are blank."""
        features = []
        for label, places in enumerate(block.places):
            rows = self.features[label][places]
            if block.blank[label].any():
                rows[block.blank[label]] = self.blank[label]
            features.append(rows)
        return _named_tensors(self.schema, features, block.edges)


def _named_tensors(
    schema: TypedSchema, features: Sequence[Float32s], edges: Sequence[Ints]
) -> Tensors:
    x = {label: torch.from_numpy(rows) for label, rows in zip(schema.labels, features, strict=True)}
    pairs = {
        kind: torch.from_numpy(pair) for kind, pair in zip(schema.edge_types, edges, strict=True)
    }
    return x, pairs


def select_typed(
    schema: TypedSchema,
    features: Sequence[Float32s],
    relationships: Ints,
    rows: Sequence[Ints],
    size: int,
    node_times: Ints | None = None,
    edge_times: Ints | None = None,
    column_times: Ints | None = None,
    blank: Sequence[Float32s] = (),
) -> TypedData:
    """Return the subgraph that `rows` induce.

    Args:
        schema: labels and relations.
        features: by label, the encoded rows of `rows[label]`, in their order.
        relationships: (source row, target row, relation) int64 [3, E].
        rows: by label, rows of the graph's one row space, in the order to train in.
        size: number of rows of the whole graph.
        node_times, column_times: by row [size]; None: all were always there.
        edge_times: by relationship [E].
        blank: by label, the row of a node without a known column.
    """
    place, label = _places(rows, size)
    edges, times = [], []
    for channel in schema.channels:
        channel_edges, channel_times = _channel_edges(
            channel, relationships, place, label, edge_times
        )
        edges.append(channel_edges)
        times.append(channel_times)
    return TypedData(
        schema,
        tuple(features),
        tuple(edges),
        TypedTimes(_by_label(rows, node_times), tuple(times), _by_label(rows, column_times)),
        tuple(blank),
    )


def _places(rows: Sequence[Ints], size: int) -> tuple[Ints, NDArray[np.int16]]:
    place, label = np.full(size, -1, np.int64), np.full(size, -1, np.int16)
    for number, label_rows in enumerate(rows):
        place[label_rows] = np.arange(len(label_rows))
        label[label_rows] = number
    return place, label


def _channel_edges(
    channel: Channel,
    relationships: Ints,
    place: Ints,
    label: NDArray[np.int16],
    edge_times: Ints | None,
) -> tuple[Ints, Ints]:
    """Edges of one channel by place, each once with its earliest time, no loops, sorted."""
    parts = []
    for code in channel.codes:
        chosen = np.flatnonzero(relationships[2] == code >> 1)
        source, target = relationships[0, chosen], relationships[1, chosen]
        if not code & 1:
            source, target = target, source
        told = np.full(len(chosen), ALWAYS) if edge_times is None else edge_times[chosen]
        inside = (label[source] == channel.source) & (label[target] == channel.target)
        inside &= source != target
        parts.append(np.stack([place[source], place[target], told])[:, inside])
    source, target, told = np.concatenate(parts, axis=1)
    order = np.lexsort((told, source, target))
    source, target, told = source[order], target[order], told[order]
    first = np.ones(len(source), np.bool_)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return np.ascontiguousarray(np.stack([source[first], target[first]])), told[first]


def _by_label(rows: Sequence[Ints], times: Ints | None) -> tuple[Ints, ...]:
    return tuple(
        np.full(len(label_rows), ALWAYS) if times is None else times[label_rows]
        for label_rows in rows
    )
