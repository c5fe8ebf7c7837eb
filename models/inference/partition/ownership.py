"""Assignment of rows to partitions: few neighbours lie elsewhere, and owners stay as it grows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InferenceGraph, InNeighbours, in_neighbours
from ringfence.models.inference.kernels.ownership import NO_OWNER, choose_owners, count_cut

__all__ = ["Cut", "divide", "extend", "measure_cut"]

Owners = NDArray[np.int16]

MAX_SHARE = 1.05  # of an equal part that a partition may own
ROUNDS = 5  # of improvement at most
ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class Cut:
    """What a division costs, per partition: rows, list entries, rows of others that it reads.

    cut: entries of lists whose node another partition owns, of all partitions together.
    """

    rows: tuple[int, ...]
    entries: tuple[int, ...]
    halo: tuple[int, ...]
    cut: int

    @property
    def share(self) -> float:
        """Share of all list entries that cross a border."""
        return self.cut / max(sum(self.entries), 1)

    @property
    def balance(self) -> float:
        """Rows of the largest partition over an equal share; 1 is even."""
        return max(self.rows) * len(self.rows) / max(sum(self.rows), 1)


def divide(graph: InferenceGraph, parts: int, rounds: int = ROUNDS) -> Owners:
    """Return the owner of each row, int16 [n], for `parts` partitions of about equal size.

    Rows begin in the order in which they were read; then each in turn joins the partition with
    most of its neighbours, until nothing moves or the rounds are over. Deterministic.

    >>> from ringfence.models.inference.graph import graph_of
    >>> pairs = graph_of(np.array([[0, 2, 4, 6], [1, 3, 5, 7]]), nodes=8)
    >>> divide(pairs, 2).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    owners = (np.arange(graph.size) * parts // max(graph.size, 1)).astype(np.int16)
    if parts == 1:
        return owners
    sizes = np.bincount(owners, minlength=parts).astype(np.int64)
    for _ in range(rounds):
        if not _improve(graph, np.arange(graph.size), owners, sizes):
            break
    return owners


def extend(graph: InferenceGraph, owners: Owners, parts: int) -> Owners:
    """Return owners of a graph that grew; rows that had one keep it.

    >>> from ringfence.models.inference.graph import graph_of
    >>> grown = graph_of(np.array([[0, 4], [4, 5]]), nodes=6)
    >>> extend(grown, np.array([0, 0, 1, 1], np.int16), 2).tolist()
    [0, 0, 1, 1, 0, 0]
    """
    known = len(owners)
    grown = np.full(graph.size, NO_OWNER, np.int16)
    grown[:known] = owners
    sizes = np.bincount(owners, minlength=parts).astype(np.int64)
    _improve(graph, np.arange(known, graph.size), grown, sizes)
    return grown


def measure_cut(graph: InferenceGraph, owners: Owners, parts: int) -> Cut:
    """Return what a division of the graph costs."""
    rows, entries, halo, cut = [], [], [], 0
    for part in range(parts):
        owned = np.flatnonzero(owners == part)
        marks = np.zeros(graph.size, np.bool_)
        held = 0
        for near in _blocks(graph, owned):
            marks[near.sources] = True
            held += len(near.sources)
            cut += int(count_cut(*near.arrays(), owners))
        marks[owned] = False
        rows.append(len(owned))
        entries.append(held)
        halo.append(int(np.count_nonzero(marks)))
    return Cut(tuple(rows), tuple(entries), tuple(halo), cut)


def _improve(
    graph: InferenceGraph, rows: NDArray[np.int64], owners: Owners, sizes: NDArray[np.int64]
) -> int:
    most = int(np.ceil(MAX_SHARE * graph.size / len(sizes)))
    return sum(
        int(choose_owners(*near.arrays(), owners, sizes, most)) for near in _blocks(graph, rows)
    )


def _blocks(graph: InferenceGraph, rows: NDArray[np.int64]) -> Iterator[InNeighbours]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield in_neighbours(graph, rows[start : start + ROWS_AT_ONCE])
