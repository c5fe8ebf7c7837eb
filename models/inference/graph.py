"""The graph for inference: each node's relationships as a sorted base, and what changed since.

A relationship stands at both of its ends, as (other end, code). The code is the relationship type
times two, plus one at the end where it points to. So one structure answers for every mapping: a
node's incoming neighbours are the sources that point to it, and through undirected types those
that it points to as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.input_checks import check_graph
from ringfence.models.inference.kernels import gather as kernels

__all__ = [
    "UNKNOWN_BASE",
    "InNeighbours",
    "InferenceGraph",
    "LateEntries",
    "RemovedEntries",
    "code_of",
    "entry_counts",
    "entry_lists",
    "find_late_entries",
    "find_places",
    "graph_of",
    "graph_of_types",
    "in_neighbours",
    "incoming_counts",
    "leave_out_types",
    "listed_through",
    "max_incoming",
    "neighbour_counts",
    "newest_change",
    "receivers",
    "with_late",
]

Ints = NDArray[np.int64]

UNKNOWN_BASE = -1


@dataclass(frozen=True, slots=True)
class RemovedEntries:
    """Entries of the base that were removed, at both ends of their relationships.

    nodes int64 [m], sorted · others int32, codes uint8 of nodes[i] are ``offsets[i] ..
    offsets[i + 1]``, sorted as in the base.
    """

    nodes: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    offsets: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    others: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    codes: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))


@dataclass(frozen=True, slots=True)
class AlteredFeatures:
    """Nodes whose features changed: their rows, and the version of each change, int64 [k]."""

    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    versions: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def since(self, version: int) -> Ints:
        """Return the rows that changed after a version, ascending, each once."""
        return np.unique(self.rows[self.versions > version])


@dataclass(frozen=True, slots=True)
class InferenceGraph:
    """Relationships by node; row i of the base is ``offsets[i] .. offsets[i + 1]``.

    offsets int64 [base nodes + 1] · others int32, codes uint8 [2 E], sorted by other, then code ·
    late_nodes int64 [m], sorted, with late_offsets [m + 1], late_others, late_codes: what came
    since the base was made. size: number of nodes. undirected: which types are, bool [types].
    changed int64 [size]: the version at which each node's relationships last changed. version: now.
    removed: entries of the base that don't count. altered: whose features changed since the rows
    were numbered, and when. A deleted node is a row without relationships that is never wanted.
    base: two graphs of one numbering that have the same number here have the same base.
    """

    offsets: Ints
    others: NDArray[np.int32]
    codes: NDArray[np.uint8]
    late_nodes: Ints
    late_offsets: Ints
    late_others: NDArray[np.int32]
    late_codes: NDArray[np.uint8]
    size: int
    undirected: NDArray[np.bool_]
    changed: Ints
    version: int
    removed: RemovedEntries = field(default_factory=RemovedEntries)
    altered: AlteredFeatures = field(default_factory=AlteredFeatures)
    base: int = UNKNOWN_BASE

    def __post_init__(self) -> None:
        """Refuse neighbours outside the graph: the compiled loops check no index."""
        check_graph(self)

    @property
    def entries(self) -> int:
        """How many entries are stored, removed ones too: two per relationship."""
        return len(self.others) + len(self.late_others)


class LateEntries(NamedTuple):
    """Where rows stand among those with entries added to, and removed from, the base; -1: none."""

    added: Ints
    removed: Ints


@dataclass(frozen=True, slots=True)
class InNeighbours:
    """Incoming neighbours: sources int32 of rows[r] are ``offsets[r] .. offsets[r + 1]``.

    Each source once, none of them the node itself, in ascending order: the same order whatever the
    history of the graph, so that sums have the same bits.
    """

    rows: Ints
    offsets: Ints
    sources: NDArray[np.int32]

    def counts(self) -> Ints:
        """How many incoming neighbours each row has, int64 [rows]."""
        return np.diff(self.offsets)

    def arrays(self) -> tuple[Ints, Ints, NDArray[np.int32]]:
        """Rows, offsets and sources, in the order that kernels take them."""
        return self.rows, self.offsets, self.sources

    def take(self, chosen: NDArray[np.bool_]) -> InNeighbours:
        """Return the rows that are chosen, bool [rows]."""
        if chosen.all():
            return self
        counts = self.counts()
        offsets = np.append(0, np.cumsum(counts[chosen]))
        return InNeighbours(self.rows[chosen], offsets, self.sources[np.repeat(chosen, counts)])


def code_of(type_index: int, points_here: bool) -> int:
    """Library only: the code of a relationship at one of its ends (the mirror stores them).

    >>> code_of(0, points_here=True), code_of(3, points_here=False)
    (1, 6)
    """
    return type_index * 2 + int(points_here)


def in_neighbours(
    graph: InferenceGraph, rows: Ints, types: Sequence[int] | None = None
) -> InNeighbours:
    """Return the incoming neighbours of ``rows``, through all types or some.

    >>> graph = graph_of(np.array([[0, 2, 2], [1, 1, 2]]), nodes=3, undirected=False)
    >>> in_neighbours(graph, np.array([1, 2])).sources
    array([0, 2], dtype=int32)
    """
    takes = _codes_taken(graph, 1)
    if types is not None:
        takes &= np.isin(np.arange(len(takes)) >> 1, types)
    return listed_through(graph, rows, takes)


def receivers(graph: InferenceGraph, rows: Ints) -> InNeighbours:
    """Return the nodes that ``rows`` send messages to, in the place of sources.

    >>> graph = graph_of(np.array([[0, 2, 2], [1, 1, 2]]), nodes=3, undirected=False)
    >>> receivers(graph, np.array([0, 1, 2])).sources
    array([1, 1], dtype=int32)
    """
    return listed_through(graph, rows, _codes_taken(graph, 0))


def max_incoming(graph: InferenceGraph, rows: Ints) -> int:
    """Return an upper bound of all incoming neighbours of ``rows`` together; nothing is listed.

    >>> max_incoming(graph_of(np.array([[0, 2], [1, 1]]), nodes=3), np.array([1]))
    2
    """
    return int(entry_counts(graph, np.ascontiguousarray(rows, np.int64)).sum())


def entry_counts(graph: InferenceGraph, rows: Ints, late: LateEntries | None = None) -> Ints:
    """Return an upper bound of how many neighbours each row has [n]; nothing is listed."""
    counts = np.empty(len(rows), np.int64)
    places = find_places(graph.late_nodes, rows) if late is None else late.added
    kernels.count_entries(rows, graph.offsets, places, graph.late_offsets, counts)
    return counts


def neighbour_counts(graph: InferenceGraph, rows: Ints) -> Ints:
    """Return how many distinct neighbours ``rows`` have, whichever way relationships point [n].

    >>> graph = graph_of(np.array([[0, 2, 2], [1, 1, 2]]), nodes=3, undirected=False)
    >>> neighbour_counts(graph, np.array([0, 1, 2]))
    array([1, 2, 1])
    """
    wanted = np.ascontiguousarray(rows, np.int64)
    return _counted(graph, wanted, np.ones_like(graph.undirected))


def incoming_counts(graph: InferenceGraph, rows: Ints) -> Ints:
    """Return how many incoming neighbours ``rows`` have [n], without listing them.

    >>> incoming_counts(graph_of(np.array([[0, 2], [1, 1]]), nodes=3), np.array([0, 1]))
    array([1, 2])
    """
    wanted = np.ascontiguousarray(rows, np.int64)
    return _counted(graph, wanted, graph.undirected)


def newest_change(graph: InferenceGraph, rows: Ints, changed: Ints | None = None) -> Ints:
    """Return the newest version at which each row or any of its neighbours changed [n].

    >>> changed = np.array([0, 4, 0])
    >>> newest_change(graph_of(np.array([[0], [1]]), 3, changed=changed), np.array([0, 2]))
    array([4, 0])
    """
    wanted = np.ascontiguousarray(rows, np.int64)
    newest = np.empty(len(wanted), np.int64)
    stamps = graph.changed if changed is None else changed
    late = find_places(graph.late_nodes, wanted)
    kernels.find_newest_changes(wanted, entry_lists(graph), late, stamps, newest)
    return newest


def graph_of(
    relationships: Ints,
    nodes: int,
    undirected: bool = True,
    changed: Ints | None = None,
    version: int = 0,
) -> InferenceGraph:
    """Library only: relationships of one type ``[2, E]`` as a graph without a late part.

    Loops and parallels may be among them; neighbours are listed without them.
    """
    source, target = np.asarray(relationships, np.int64)
    typed = np.stack([source, target, np.zeros(len(source), np.int64)])
    return graph_of_types(typed, nodes, np.array([undirected]), changed, version)


def graph_of_types(
    relationships: Ints,
    nodes: int,
    undirected: NDArray[np.bool_],
    changed: Ints | None = None,
    version: int = 0,
) -> InferenceGraph:
    """Return relationships (source, target, type) ``[3, E]`` as a graph without a late part.

    ``undirected`` is by type. Loops and parallels may be among them.
    """
    source, target, kind = np.asarray(relationships, np.int64)
    node = np.concatenate([target, source])
    other = np.concatenate([source, target])
    code = np.concatenate([2 * kind + 1, 2 * kind]).astype(np.uint8)
    order = np.lexsort((code, other, node))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=nodes))])
    nobody = np.empty(0, np.int64)
    return InferenceGraph(
        offsets.astype(np.int64), other[order].astype(np.int32), code[order],
        nobody, np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8),
        nodes, undirected,
        np.zeros(nodes, np.int64) if changed is None else changed, version,
    )  # fmt: skip


def with_late(
    graph: InferenceGraph, relationships: Ints, nodes: int, version: int
) -> InferenceGraph:
    """Library only: ``graph`` grown to ``nodes`` by late relationships of type 0 ``[2, E]``.

    >>> graph = graph_of(np.array([[0], [1]]), nodes=2)
    >>> grown = with_late(graph, np.array([[2], [0]]), nodes=3, version=1)
    >>> in_neighbours(grown, np.array([0])).sources
    array([1, 2], dtype=int32)
    """
    late = graph_of(relationships, nodes)
    touched = np.flatnonzero(np.diff(late.offsets))
    changed = np.full(nodes, version, np.int64)
    changed[: graph.size] = graph.changed[: graph.size]
    changed[touched] = version
    return InferenceGraph(
        graph.offsets, graph.others, graph.codes,
        touched, np.append(late.offsets[touched], late.offsets[-1]), late.others, late.codes,
        nodes, graph.undirected, changed, version,
    )  # fmt: skip


def leave_out_types(graph: InferenceGraph, types: Sequence[int]) -> InferenceGraph:
    """Return a graph without the relationships of some types; its arrays are copies.

    >>> neighbour_counts(leave_out_types(graph_of(np.array([[0], [1]]), 2), [0]), np.array([0]))
    array([0])
    """
    offsets, kept = _kept_entries(graph.offsets, graph.codes, types)
    late_offsets, late = _kept_entries(graph.late_offsets, graph.late_codes, types)
    gone = graph.removed
    gone_offsets, still = _kept_entries(gone.offsets, gone.codes, types)
    return replace(
        graph,
        offsets=offsets, others=graph.others[kept], codes=graph.codes[kept],
        late_offsets=late_offsets, late_others=graph.late_others[late],
        late_codes=graph.late_codes[late],
        removed=RemovedEntries(gone.nodes, gone_offsets, gone.others[still], gone.codes[still]),
        base=UNKNOWN_BASE,
    )  # fmt: skip


def _kept_entries(
    offsets: Ints, codes: NDArray[np.uint8], types: Sequence[int]
) -> tuple[Ints, NDArray[np.bool_]]:
    kept = ~np.isin(codes >> 1, np.array(types, np.uint8))
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[offsets], kept


def entry_lists(graph: InferenceGraph) -> kernels.Lists:
    """Return the entries as the compiled loops take them."""
    gone = graph.removed
    return kernels.Lists(
        graph.offsets, graph.others, graph.codes,
        graph.late_offsets, graph.late_others, graph.late_codes,
        gone.offsets, gone.others, gone.codes,
    )  # fmt: skip


def find_late_entries(graph: InferenceGraph, rows: Ints) -> LateEntries:
    """Return where rows stand among those whose entries changed since the base was made."""
    return LateEntries(find_places(graph.late_nodes, rows), find_places(graph.removed.nodes, rows))


def listed_through(
    graph: InferenceGraph,
    rows: Ints,
    takes: NDArray[np.bool_],
    least: Ints | None = None,
    late: LateEntries | None = None,
) -> InNeighbours:
    """Return the neighbours of ``rows`` through entries whose code is taken, bool [codes].

    least int64 [rows]: of each row only the neighbours from this number on. late: of these rows, if
    they are listed more than once.
    """
    wanted = np.ascontiguousarray(rows, np.int64)
    late = find_late_entries(graph, wanted) if late is None else late
    least = np.zeros(len(wanted), np.int64) if least is None else least
    room = int(entry_counts(graph, wanted, late).sum())
    sources = np.empty(room, np.int32)
    offsets = np.empty(len(wanted) + 1, np.int64)
    filled = kernels.list_neighbours(
        wanted, entry_lists(graph), late.added, late.removed, takes, least, offsets, sources
    )
    return InNeighbours(wanted, offsets, sources[:filled])


def _codes_taken(graph: InferenceGraph, end: int) -> NDArray[np.bool_]:
    """Codes of the entries that count at one end of relationships: 1 where they point to."""
    takes = np.repeat(graph.undirected, 2)
    takes[end::2] = True
    return takes


def _counted(graph: InferenceGraph, wanted: Ints, undirected: NDArray[np.bool_]) -> Ints:
    late, removed = find_places(graph.late_nodes, wanted), find_places(graph.removed.nodes, wanted)
    counts = np.empty(len(wanted), np.int64)
    kernels.count_neighbours(wanted, entry_lists(graph), late, removed, undirected, counts)
    return counts


def find_places(nodes: Ints, rows: Ints) -> Ints:
    """Where each row stands among some nodes, which ascend; -1 where it isn't one of them."""
    if not len(nodes):
        return np.full(len(rows), -1, np.int64)
    place = np.searchsorted(nodes, rows)
    inside = np.minimum(place, len(nodes) - 1)
    return np.where(nodes[inside] == rows, inside, -1)
