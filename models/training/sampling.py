"""Sampled neighbourhoods: a small graph around a few nodes, drawn from a large one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Neighbours", "draw_distinct", "neighbours_of", "sample_block"]

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Incoming neighbours: those of node v are ``sources[offsets[v]:offsets[v + 1]]``."""

    offsets: Nodes
    sources: Nodes


@dataclass(frozen=True, slots=True)
class Block:
    """A sampled graph: ``nodes`` of the large one, seeds first; edges in the block's numbers."""

    nodes: Nodes
    edge_index: Nodes
    seeds: int


def neighbours_of(edge_index: NDArray[np.integer], nodes: int) -> Neighbours:
    """The edges ``[2, edges]`` sorted by target; messages flow from row 0 to row 1.

    >>> neighbours_of(np.array([[2, 0, 1], [1, 1, 0]]), nodes=3)
    Neighbours(offsets=array([0, 1, 3, 3]), sources=array([1, 2, 0]))
    """
    source, target = np.asarray(edge_index, dtype=np.int64)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=nodes)
    return Neighbours(np.concatenate([[0], np.cumsum(counts)]), source[order])


def sample_block(
    neighbours: Neighbours, seeds: Nodes, fanouts: Sequence[int | None], rng: np.random.Generator
) -> Block:
    """A random graph around ``seeds``: hop by hop, at most so many neighbours of each node.

    Each node is expanded once, at the hop where it is first met, and its neighbours are drawn
    uniformly without replacement; None takes all of them. The cost follows the block, not the
    graph.

    Args:
        neighbours: the large graph.
        seeds: the nodes to compute, each once.
        fanouts: the most neighbours per node, one number per hop.
        rng: decides the draw.

    >>> graph = neighbours_of(np.array([[1, 2, 0, 3], [0, 0, 1, 2]]), nodes=4)
    >>> sample_block(graph, np.array([0]), [None, None], np.random.default_rng(0))
    Block(nodes=array([0, 1, 2, 3]), edge_index=array([[1, 2, 0, 3],
           [0, 0, 1, 2]]), seeds=1)
    """
    known = frontier = np.asarray(seeds, dtype=np.int64)
    sources, targets = [known[:0]], [known[:0]]
    for fanout in fanouts:
        source, target = _draw_incoming(neighbours, frontier, fanout, rng)
        sources.append(source)
        targets.append(target)
        frontier = np.setdiff1d(source, known)
        known = np.concatenate([known, frontier])
    edges = np.stack([np.concatenate(sources), np.concatenate(targets)])
    order = np.argsort(known)
    return Block(known, order[np.searchsorted(known, edges, sorter=order)], len(seeds))


def _draw_incoming(
    neighbours: Neighbours, nodes: Nodes, fanout: int | None, rng: np.random.Generator
) -> tuple[Nodes, Nodes]:
    start = neighbours.offsets[nodes]
    degree = neighbours.offsets[nodes + 1] - start
    many = np.zeros(len(nodes), dtype=bool) if fanout is None else degree > fanout
    few = ~many
    place = np.arange(degree[few].sum()) - np.repeat(
        np.cumsum(degree[few]) - degree[few], degree[few]
    )
    at, target = np.repeat(start[few], degree[few]) + place, np.repeat(nodes[few], degree[few])
    if fanout and many.any():
        picked = start[many][:, None] + draw_distinct(degree[many], fanout, rng)
        at = np.concatenate([at, picked.ravel()])
        target = np.concatenate([target, np.repeat(nodes[many], fanout)])
    return neighbours.sources[at], target


def draw_distinct(high: Nodes, count: int, rng: np.random.Generator) -> Nodes:
    """Per row, ``count`` different numbers below ``high``, uniformly (Floyd's algorithm)."""
    picks = np.empty((len(high), count), dtype=np.int64)
    for column in range(count):
        last = high - count + column
        draw = rng.integers(0, last + 1)
        taken = (picks[:, :column] == draw[:, None]).any(axis=1)
        picks[:, column] = np.where(taken, last, draw)
    return picks
