"""Bring the mirror up to date with the graph: what is new, or all of it where that isn't enough."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector import mirror as mirrors
from ringfence.connector.ahead import ahead
from ringfence.connector.changes import (
    RelationshipBlock,
    feature_width,
    read_again,
    read_nodes,
    read_relationships,
)
from ringfence.connector.errors import GraphError
from ringfence.connector.graph import Graph
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.resume import KEPT_SECONDS, finish
from ringfence.connector.rows import NodeBlock
from ringfence.connector.times import NANOSECONDS
from ringfence.connector.watermark import (
    check_time_types,
    count_nodes,
    count_relationships,
    horizon,
)
from ringfence.connector.whole import all_nodes, all_relationships

Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many rows so far, how many there are (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The mirror as it is now, and what this read brought."""

    mirror: Mirror
    new_rows: NDArray[np.int64]
    new_edges: int
    from_ns: int | None
    rebuilt: str
    note: str


@dataclass(slots=True)
class Reader:
    """Where and how to read: the graph, its mapping, the block size and the overlap.

    A first read is saved every `part_seconds`, so that one that dies need not begin anew.
    """

    graph: Graph
    mapping: GraphMapping
    folder: Path
    rows: int
    overlap_seconds: float
    progress: Progress = lambda _what, _done, _all: None
    part_seconds: float = 10.0
    is_first: bool = field(default=False, init=False)
    saved_at: float = field(default_factory=time.monotonic, init=False)

    def keep(self, mirror: Mirror) -> None:
        """Save what a first read has brought so far, when it is time."""
        if self.is_first and time.monotonic() - self.saved_at >= self.part_seconds:
            mirrors.save_part(mirror, self.folder)
            self.saved_at = time.monotonic()

    def take_nodes(self, mirror: Mirror, blocks: Iterator[NodeBlock], expected: int) -> None:
        """Add blocks of a first read, with progress, saving now and then."""
        for block in blocks:
            mirror.add_nodes([block])
            self.progress("nodes", mirror.size + len(mirror.rejected), expected)
            self.keep(mirror)

    def take_sources(self, mirror: Mirror, blocks: Iterator[RelationshipBlock]) -> None:
        """Add all relationships that start at the blocks' sources, likewise."""
        done = mirror.edge_count
        for block in blocks:
            mirror.add_sources(block)
            done += len(block.targets)
            self.progress("relationships", done, mirror.relationship_count)
            self.keep(mirror)


def identity(graph: Graph, mapping: GraphMapping) -> str:
    """Return what a mirror must belong to: this database with this mapping."""
    database = graph.read("CALL db.info() YIELD id RETURN id")[0]["id"]
    return hashlib.sha256(f"{database}\n{mapping!r}".encode()).hexdigest()[:32]


def refresh(reader: Reader, *, whole: bool = False) -> Refreshed:
    """Read what is new; read everything where asked to, or where the counts show a difference."""
    name = identity(reader.graph, reader.mapping)
    known = None if whole else mirrors.load(reader.folder, name)
    if known is None:
        return _read_all(reader, name, "asked for" if whole else "first read")
    why = _catch_up(reader, known)
    return _rebuild(reader, name, why) if isinstance(why, str) else why


def _catch_up(reader: Reader, known: Mirror) -> Refreshed | str:
    """Append what is new; a sentence where that isn't enough."""
    relationships = count_relationships(reader.graph, reader.mapping)
    if relationships < known.relationship_count:
        return "relationships were deleted"
    before = count_nodes(reader.graph, reader.mapping)
    read = _append(reader, known)
    if known.size + len(known.rejected) < before:
        return "nodes were missing (backdated, or without a creation time)"
    if known.size + len(known.rejected) > count_nodes(reader.graph, reader.mapping):
        return "nodes were deleted"
    known.relationship_count = relationships
    return read


def _read_all(reader: Reader, name: str, why: str) -> Refreshed:
    """Read the whole graph; where there never was a mirror, go on with a read that died."""
    reader.is_first = not mirrors.exists(reader.folder, name)
    part = mirrors.load_part(reader.folder, name, KEPT_SECONDS) if reader.is_first else None
    if part is not None:
        had = part.size
        if finish(reader, part, count_nodes(reader.graph, reader.mapping)):
            read = _catch_up(reader, part)
            if not isinstance(read, str):
                part.sources_read = np.empty(0, np.uint8)
                why = f"{why}, continued: {had} nodes had been read before it was interrupted"
                return Refreshed(part, np.arange(part.size), part.edge_count, None, why, read.note)
        mirrors.forget_part(reader.folder)
    return _rebuild(reader, name, why)


def _rebuild(reader: Reader, name: str, why: str) -> Refreshed:
    graph, mapping = reader.graph, reader.mapping
    expected = count_nodes(graph, mapping)
    if expected == 0:
        raise GraphError(
            found=f"the graph has no :{mapping.label} nodes",
            needed="[graph] label of the nodes to predict",
            next_step="ringfence init   (lists the labels that exist)",
        )
    check_time_types(graph, mapping)
    fresh = mirrors.create(reader.folder, name, feature_width(graph, mapping))
    fresh.relationship_count = count_relationships(graph, mapping)
    note = _read_from_nothing(reader, fresh, expected)
    if fresh.size + len(fresh.rejected) < expected:
        raise GraphError(
            found=f"{expected} :{mapping.label} nodes have only {fresh.size} different keys",
            needed=f"a unique {mapping.key}",
            next_step="ringfence migrate   (creates the constraint, or names the duplicates)",
        )
    return Refreshed(fresh, np.arange(fresh.size), fresh.edge_count, None, why, note)


def _read_from_nothing(reader: Reader, mirror: Mirror, expected: int) -> str:
    """The watermark is where this read begins: what comes meanwhile is left to the next one."""
    end = horizon(reader.graph)
    mirror.watermark_ns = end.watermark_ns
    nodes = all_nodes(reader.graph, reader.mapping, mirror.width, reader.rows, expected)
    reader.take_nodes(mirror, nodes, expected)
    sources = all_relationships(reader.graph, reader.mapping, reader.rows, expected)
    reader.take_sources(mirror, sources)
    mirror.add_relationships([])
    mirror.sources_read = np.empty(0, np.uint8)
    return end.note


def _append(reader: Reader, mirror: Mirror) -> Refreshed:
    """Nodes first: a relationship whose node is committed in between waits in the mirror."""
    end = horizon(reader.graph)
    from_ns = mirror.watermark_ns or 0
    since = from_ns - int(reader.overlap_seconds * NANOSECONDS)
    mirror.advance()
    first, done = mirror.size, 0
    _take_back(reader, mirror)
    for block in ahead(read_nodes(reader.graph, reader.mapping, mirror.width, since, reader.rows)):
        mirror.add_nodes([block])
        done += len(block.keys) + len(block.rejected)
        reader.progress("nodes", done, 0)
    new_rows = np.arange(first, mirror.size)
    new_keys = [decode_key(key) for key in mirror.keys[first:]]
    before, done = mirror.edge_count, 0
    for part in ahead(
        read_relationships(reader.graph, reader.mapping, since, new_keys, reader.rows)
    ):
        mirror.add_block(part)
        done += len(part.targets)
        reader.progress("relationships", done, 0)
    mirror.add_relationships([])
    mirror.watermark_ns = max(end.watermark_ns, from_ns)
    new_edges = mirror.edge_count - before
    return Refreshed(mirror, new_rows, new_edges, from_ns, "", end.note)


def _take_back(reader: Reader, mirror: Mirror) -> None:
    """Look at quarantined nodes again; those that were mended join with all their relationships."""
    waiting = list(mirror.rejected)
    if not waiting:
        return
    first = mirror.size
    mirror.rejected.clear()  # those that are still unusable come back with their reason
    for block in read_again(reader.graph, reader.mapping, mirror.width, waiting, reader.rows):
        mirror.add_nodes([block])
    keys = [decode_key(key) for key in mirror.keys[first:]]
    if keys:
        kinds = tuple(replace(kind, created_at=None) for kind in reader.mapping.relationships)
        mapping = replace(reader.mapping, relationships=kinds)
        for part in read_relationships(reader.graph, mapping, 0, keys, reader.rows):
            mirror.add_block(part)
