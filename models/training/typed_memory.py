"""How much memory training on a typed graph takes, just from counts, before anything is made.

Full passes hold every node's hidden row and the first layer's messages; batches hold the blocks
around a few seeds. Which of the two is used follows from the size of the graph, never from the
memory that happens to be free: the same graph gives the same weights on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ringfence.models.schema import CLASSIFIED, TypedSchema

__all__ = [
    "BATCH_SIZE",
    "MAX_FULL_PASS_BYTES",
    "NEIGHBOURS_PER_CHANNEL",
    "TrainingSize",
    "choose_batch_size",
    "predict_bytes",
]

MAX_FULL_PASS_BYTES = 4e9  # a graph that needs more is trained in batches
BATCH_SIZE = 512
NEIGHBOURS_PER_CHANNEL = 10  # of a sampled block, in each hop
HIDDEN_COPIES = 15  # of a layer's rows: products, sums, relu, dropout, gradients; measured 10 to 14
EDGE_BYTES = 48  # source, receiver and time as int64, and the order that sorts them
VALIDATION_SHARE = 0.3  # of the classified nodes whose blocks are kept


@dataclass(frozen=True, slots=True)
class TrainingSize:
    """Nodes and encoded columns by label, relationships by relation of the schema."""

    schema: TypedSchema
    nodes: Sequence[int]
    widths: Sequence[int]
    relationships: Sequence[int]
    hidden: int
    layers: int = 2


def choose_batch_size(size: TrainingSize, asked: int | None) -> int:
    """Return the batch size; 0 for full passes. None lets the size of the graph decide."""
    if asked is not None:
        return asked
    return BATCH_SIZE if predict_bytes(size, 0) > MAX_FULL_PASS_BYTES else 0


def predict_bytes(size: TrainingSize, batch_size: int) -> float:
    """Return the bytes that training takes besides Python, torch and the mirror.

    >>> from ringfence.models.schema import Relation
    >>> schema = TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),))
    >>> small = TrainingSize(schema, (300_000, 1_500), (40, 60), (300_000,), hidden=64)
    >>> round(predict_bytes(small, 0) / 1e6), round(predict_bytes(small, 512) / 1e6)
    (1384, 166)
    """
    features = sum(4.0 * n * width for n, width in zip(size.nodes, size.widths, strict=True))
    edges = float(EDGE_BYTES * sum(_channel_edges(size)))
    if batch_size:
        return features + 2 * edges + _block_bytes(size, batch_size)
    means = sum(
        4.0 * size.nodes[channel.target] * size.widths[channel.source]
        for channel in size.schema.channels
    )
    hidden = 4.0 * HIDDEN_COPIES * sum(size.nodes) * size.hidden
    messages = max(_channel_edges(size), default=0) * 4.0 * max(*size.widths, size.hidden)
    return features + edges + means + hidden + messages


def _channel_edges(size: TrainingSize) -> list[int]:
    """Edges of each channel; one with both codes has each relationship twice."""
    return [
        size.relationships[channel.codes[0] // 2] * len(channel.codes)
        for channel in size.schema.channels
    ]


def _block_bytes(size: TrainingSize, batch_size: int) -> float:
    """One block with its columns, hidden rows and gradients, and the places of validation."""
    rows = _rows_per_seed(size)
    width = max(*size.widths, size.hidden)
    kept = size.nodes[CLASSIFIED] * VALIDATION_SHARE * rows * 34
    return batch_size * rows * width * 4.0 * HIDDEN_COPIES + kept


def _rows_per_seed(size: TrainingSize) -> float:
    """About how many rows a seed's block has, by the mean number of neighbours per channel."""
    frontier = [float(label == CLASSIFIED) for label in range(len(size.nodes))]
    total = 1.0
    for _ in range(size.layers):
        met = [0.0] * len(size.nodes)
        for channel, edges in zip(size.schema.channels, _channel_edges(size), strict=True):
            degree = min(NEIGHBOURS_PER_CHANNEL, edges / max(size.nodes[channel.target], 1))
            met[channel.source] += frontier[channel.target] * degree
        frontier, total = met, total + sum(met)
    return total
