"""Where and how a graph with several labels is read, and what a read brought."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ringfence.connector.mapping import TypedMapping
from ringfence.connector.mirror.typed import TypedMirror
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.read.sync import Progress, SyncResult
from ringfence.connector.neo4j.read.typed.nodes import LabelReader
from ringfence.connector.neo4j.read.typed.relations import RelationReader

FirstSeen = Callable[[Sequence[str]], Mapping[str, int]]
"""Tells when nodes were first seen, by their keys, as SQL has it; unknown keys are left out."""


@dataclass(slots=True)
class TypedReader:
    """The graph, its mapping, the block size and the overlap; `first_seen` asks the audit store."""

    graph: Graph
    mapping: TypedMapping
    folder: Path
    rows: int
    overlap_seconds: float
    progress: Progress = lambda _what, _done, _all: None
    check_nodes: int = 0
    first_seen: FirstSeen = field(default=lambda _keys: {})

    def label(self, label: int, now_ns: int = 0) -> LabelReader:
        """Return what reads the nodes of one label."""
        return LabelReader(self.graph, self.mapping, label, self.rows, now_ns)

    def relation(self, index: int) -> RelationReader:
        """Return what reads one relation."""
        return RelationReader(self.graph, self.mapping, index, self.rows)


@dataclass(frozen=True, slots=True)
class TypedRead:
    """The mirror as it is now with all its labels, and what this read brought.

    `read.mirror` is the mirror's plain part; `read.new_rows` are rows of the classified label.
    `first_seen` has the nodes that this run saw first, where the graph has no creation times.
    """

    typed: TypedMirror
    read: SyncResult
    first_seen: Mapping[str, int]
