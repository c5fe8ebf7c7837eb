"""Bring the mirror up to date with the graph: what is new, or all of it where that isn't enough."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector import mirror as mirrors
from ringfence.connector.changes import feature_width, read_again, read_nodes, read_relationships
from ringfence.connector.errors import GraphError
from ringfence.connector.graph import Graph
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.times import NANOSECONDS
from ringfence.connector.watermark import (
    check_time_types,
    count_nodes,
    count_relationships,
    horizon,
)

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


@dataclass(frozen=True, slots=True)
class Reader:
    """Where and how to read: the graph, its mapping, the block size and the overlap."""

    graph: Graph
    mapping: GraphMapping
    folder: Path
    rows: int
    overlap_seconds: float
    progress: Progress = lambda _what, _done, _all: None


def identity(graph: Graph, mapping: GraphMapping) -> str:
    """Return what a mirror must belong to: this database with this mapping."""
    database = graph.read("CALL db.info() YIELD id RETURN id")[0]["id"]
    return hashlib.sha256(f"{database}\n{mapping!r}".encode()).hexdigest()[:32]


def refresh(reader: Reader, *, whole: bool = False) -> Refreshed:
    """Read what is new; read everything where asked to, or where the counts show a difference."""
    name = identity(reader.graph, reader.mapping)
    known = None if whole else mirrors.load(reader.folder, name)
    if known is None:
        return _rebuild(reader, name, "asked for" if whole else "first read")
    relationships = count_relationships(reader.graph, reader.mapping)
    if relationships < known.relationship_count:
        return _rebuild(reader, name, "relationships were deleted")
    before = count_nodes(reader.graph, reader.mapping)
    read = _append(reader, known)
    if known.size + len(known.rejected) < before:
        return _rebuild(reader, name, "nodes were missing (backdated, or without a creation time)")
    if known.size + len(known.rejected) > count_nodes(reader.graph, reader.mapping):
        return _rebuild(reader, name, "nodes were deleted")
    known.relationship_count = relationships
    return read


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
    read = _append(reader, fresh, expected)
    if fresh.size + len(fresh.rejected) < expected:
        raise GraphError(
            found=f"{expected} :{mapping.label} nodes have only {fresh.size} different keys",
            needed=f"a unique {mapping.key}",
            next_step="ringfence migrate   (creates the constraint, or names the duplicates)",
        )
    return Refreshed(fresh, read.new_rows, read.new_edges, None, why, read.note)


def _append(reader: Reader, mirror: Mirror, expected: int = 0) -> Refreshed:
    """Nodes first: a relationship whose node is committed in between waits in the mirror."""
    end = horizon(reader.graph)
    from_ns = mirror.watermark_ns
    overlap_ns = int(reader.overlap_seconds * NANOSECONDS)
    since = None if from_ns is None else from_ns - overlap_ns
    mirror.advance()
    first, done = mirror.size, 0
    _take_back(reader, mirror)
    for block in read_nodes(reader.graph, reader.mapping, mirror.width, since, reader.rows):
        mirror.add_nodes([block])
        done += len(block.keys) + len(block.rejected)
        reader.progress("nodes", done, expected)
    new_rows = np.arange(first, mirror.size)
    new_keys = [] if from_ns is None else [decode_key(key) for key in mirror.keys[first:]]
    before, done = mirror.edge_count, 0
    for part in read_relationships(reader.graph, reader.mapping, since, new_keys, reader.rows):
        mirror.add_block(part)
        done += len(part.sources)
        reader.progress("relationships", done, mirror.relationship_count if expected else 0)
    mirror.add_relationships([])
    mirror.watermark_ns = max(end.watermark_ns, from_ns or end.watermark_ns)
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
