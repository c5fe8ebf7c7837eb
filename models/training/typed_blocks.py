"""Time-safe sampled neighbourhoods in typed graphs: nothing in them is later than their seed.

Every seed has a block of its own, because every seed has a time of its own: no node, relationship
or column in it is later. Edges are sorted by time together with their sources, so that what a seed
may see is the beginning of each list. (A sampler whose times are not sorted along with its edges
leaks: pyg-team/pytorch_geometric#7794.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.models.schema import CLASSIFIED, TypedSchema
from ringfence.models.training.sampling import draw_distinct

if TYPE_CHECKING:
    from ringfence.models.training.typed_data import TypedData

__all__ = ["TimedGraph", "TypedBlock", "sample_typed_block", "timed_graph"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimedNeighbours:
    """One channel: sources of receiver v are ``sources[offsets[v]:offsets[v + 1]]``, by time."""

    offsets: Ints
    sources: Ints
    times: Ints


@dataclass(frozen=True, slots=True)
class TimedGraph:
    """All channels, and when each node and its columns are known."""

    schema: TypedSchema
    channels: tuple[TimedNeighbours, ...]
    nodes: tuple[Ints, ...]
    columns: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class TypedBlock:
    """Blocks of several seeds side by side; the first rows of the classified label are the seeds.

    places: by label, places in the large graph [m_label]. edges: by channel, in the block's numbers
    [2, E]. blank: by label, which rows have columns that are later than their seed. seed_of: by
    label, the seed that each row belongs to.
    """

    places: tuple[Ints, ...]
    edges: tuple[Ints, ...]
    blank: tuple[NDArray[np.bool_], ...]
    seed_of: tuple[Ints, ...]
    seeds: int


def timed_graph(data: TypedData) -> TimedGraph:
    """Sort each channel by receiver and by the time from which an edge and its source are there."""
    channels = []
    for number, channel in enumerate(data.schema.channels):
        source, target = data.edges[number]
        known = np.maximum(data.times.edges[number], data.times.nodes[channel.source][source])
        order = np.lexsort((source, known, target))
        counts = np.bincount(target, minlength=len(data.features[channel.target]))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        channels.append(TimedNeighbours(offsets, source[order], known[order]))
    return TimedGraph(data.schema, tuple(channels), data.times.nodes, data.times.columns)


def sample_typed_block(
    graph: TimedGraph, seeds: Ints, fanouts: Sequence[int | None], rng: np.random.Generator
) -> TypedBlock:
    """Draw a block around each seed, hop by hop, at most so many neighbours per node and channel.

    Args:
        graph: from `timed_graph`.
        seeds: places of nodes of the classified label, each once.
        fanouts: the most neighbours per node and channel, one number per hop; None takes all.
        rng: decides the draw, uniform among the neighbours that the seed's time allows.
    """
    schema, limit = graph.schema, graph.nodes[CLASSIFIED][seeds]
    known = [np.empty((2, 0), np.int64) for _ in schema.labels]  # (seed, place), seeds first
    known[CLASSIFIED] = np.stack([np.arange(len(seeds)), np.asarray(seeds, np.int64)])
    frontier = list(known)
    edges: list[list[Ints]] = [[] for _ in schema.channels]
    for fanout in fanouts:
        met: list[list[Ints]] = [[] for _ in schema.labels]
        for number, channel in enumerate(schema.channels):
            seed, target = frontier[channel.target]
            at, source = _draw(graph.channels[number], target, limit[seed], fanout, rng)
            edges[number].append(np.stack([seed[at], source, target[at]]))
            met[channel.source].append(np.stack([seed[at], source]))
        frontier = [_new_pairs(known[label], met[label]) for label in range(len(schema.labels))]
        known = [np.concatenate([a, b], axis=1) for a, b in zip(known, frontier, strict=True)]
    places, seed_of = tuple(pairs[1] for pairs in known), tuple(pairs[0] for pairs in known)
    blank = tuple(
        graph.columns[label][places[label]] > limit[seed_of[label]]
        for label in range(len(schema.labels))
    )
    numbered = tuple(
        _numbered(edges[number], known[channel.source], known[channel.target])
        for number, channel in enumerate(schema.channels)
    )
    return TypedBlock(places, numbered, blank, seed_of, len(seeds))


def _draw(
    near: TimedNeighbours,
    targets: Ints,
    limit: Ints,
    fanout: int | None,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    """For each target up to `fanout` sources not later than its limit: (which target, source)."""
    start = near.offsets[targets]
    degree = _count_until(near, targets, limit)
    many = np.zeros(len(targets), np.bool_) if fanout is None else degree > fanout
    few = np.flatnonzero(~many)
    at = np.repeat(few, degree[few])
    place = np.arange(len(at)) - np.repeat(np.cumsum(degree[few]) - degree[few], degree[few])
    entry = start[at] + place
    if fanout is not None and many.any():
        rows = np.flatnonzero(many)
        picked = start[rows][:, None] + draw_distinct(degree[rows], fanout, rng)
        at = np.concatenate([at, np.repeat(rows, fanout)])
        entry = np.concatenate([entry, picked.ravel()])
    return at, near.sources[entry]


def _count_until(near: TimedNeighbours, targets: Ints, limit: Ints) -> Ints:
    """How many entries of each target are not later than its limit: bisection, all at once."""
    low, high = near.offsets[targets].copy(), near.offsets[targets + 1].copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        early = near.times[np.where(open_, middle, 0)] <= limit
        low = np.where(open_ & early, middle + 1, low)
        high = np.where(open_ & ~early, middle, high)
    return low - near.offsets[targets]


def _new_pairs(known: Ints, met: list[Ints]) -> Ints:
    """The pairs of seed and place that were not known yet, each once."""
    if not met:
        return np.empty((2, 0), np.int64)
    candidates = np.unique(_packed(np.concatenate(met, axis=1)))
    fresh = np.setdiff1d(candidates, _packed(known), assume_unique=True)
    return np.stack([fresh >> 40, fresh & ((1 << 40) - 1)])


def _packed(pairs: Ints) -> Ints:
    packed: Ints = pairs[0] << 40 | pairs[1]
    return packed


def _numbered(edges: list[Ints], sources: Ints, targets: Ints) -> Ints:
    """Edges in the block's numbers [2, E], sorted by receiver and source."""
    seed, source, target = np.concatenate([np.empty((3, 0), np.int64), *edges], axis=1)
    pair = np.stack(
        [
            _position(sources, np.stack([seed, source])),
            _position(targets, np.stack([seed, target])),
        ]
    )
    return np.ascontiguousarray(pair[:, np.lexsort((pair[0], pair[1]))])


def _position(known: Ints, pairs: Ints) -> Ints:
    packed = _packed(known)
    order = np.argsort(packed)
    return np.asarray(order[np.searchsorted(packed, _packed(pairs), sorter=order)], np.int64)
