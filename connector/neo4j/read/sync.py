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
from ringfence.connector.errors import GraphError
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.format import require_room
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.accounting import Difference, open_accounts, settle_accounts
from ringfence.connector.neo4j.read.columns import NodeBlock
from ringfence.connector.neo4j.read.comparison import (
    compare_keys,
    read_missing,
    relationships_of,
    reread_relationships,
)
from ringfence.connector.neo4j.read.counts import count_graph
from ringfence.connector.neo4j.read.full import all_nodes, all_relationships
from ringfence.connector.neo4j.read.incremental import (
    RelationshipBlock,
    feature_width,
    read_nodes,
    read_nodes_by_id,
    read_relationships,
)
from ringfence.connector.neo4j.read.odd_times import find_odd_times
from ringfence.connector.neo4j.read.repair import remove_gone, take_over
from ringfence.connector.neo4j.read.resume import MAX_PART_AGE_SECONDS, finish_first_read
from ringfence.connector.neo4j.read.slices import (
    SliceDifference,
    choose_slice,
    compare_slice,
)
from ringfence.connector.neo4j.read.watermark import (
    MIN_SHARE_OF_KIND,
    check_time_types,
    count_nodes,
    horizon,
)
from ringfence.connector.times import NANOSECONDS

SAMPLE_NODES = 1_000  # that a first read looks at before it reads all

Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many rows so far, how many there are (0: unknown)."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The mirror as it is now, and what this read brought.

    `rebuilt` says why the whole graph was read ("" where what is new was enough), `note` what held
    the watermark back, and what comparisons with the graph brought.
    """

    mirror: Mirror
    new_rows: NDArray[np.int64]
    new_edges: int
    from_ns: int | None
    rebuilt: str
    note: str


@dataclass(slots=True)
class GraphReader:
    """Where and how to read: the graph, its mapping, the block size and the overlap.

    A first read is saved every `part_seconds`, so that one that dies need not begin anew. Each
    later one compares `check_nodes` nodes with the graph.
    """

    graph: Graph
    mapping: GraphMapping
    folder: Path
    rows: int
    overlap_seconds: float
    progress: Progress = lambda _what, _done, _all: None
    part_seconds: float = 10.0
    check_nodes: int = 0
    is_first: bool = field(default=False, init=False)
    saved_at: float = field(default_factory=time.monotonic, init=False)

    def save_part(self, mirror: Mirror) -> None:
        """Save what a first read has brought so far, every `part_seconds`."""
        if self.is_first and time.monotonic() - self.saved_at >= self.part_seconds:
            mirrors.save_part(mirror, self.folder)
            self.saved_at = time.monotonic()

    def add_nodes(self, mirror: Mirror, blocks: Iterator[NodeBlock], expected: int) -> None:
        """Add blocks of nodes, with progress; a first read is saved now and then."""
        for block in blocks:
            mirror.add_nodes([block])
            self.progress("nodes", mirror.node_count + len(mirror.rejected), expected)
            self.save_part(mirror)

    def add_sources(self, mirror: Mirror, blocks: Iterator[RelationshipBlock]) -> None:
        """Add all relationships that start at the blocks' sources, likewise."""
        done = mirror.edge_count
        for block in blocks:
            mirror.add_sources(block)
            done += len(block.targets)
            self.progress("relationships", done, mirror.relationship_count)
            self.save_part(mirror)


def mirror_identity(graph: Graph, mapping: GraphMapping) -> str:
    """Return what a mirror must belong to: this database with this mapping."""
    database = graph.read("CALL db.info() YIELD id RETURN id")[0]["id"]
    return hashlib.sha256(f"{database}\n{mapping!r}".encode()).hexdigest()[:32]


def sync_mirror(reader: GraphReader, *, whole: bool = False) -> SyncResult:
    """Read what is new; read everything where asked to, or where the counts show a difference."""
    name = mirror_identity(reader.graph, reader.mapping)
    known = None if whole else mirrors.load(reader.folder, name)
    if known is not None and mirrors.is_compaction_due(known):
        known = mirrors.compact(known, reader.folder)
    if known is None:
        return _read_whole(reader, name, "asked for" if whole else "first read")
    why = _catch_up(reader, known)
    return _rebuild(reader, name, why) if isinstance(why, str) else why


def _catch_up(reader: GraphReader, known: Mirror) -> SyncResult | str:
    """Append what is new, account for it, compare a slice; a sentence where that isn't enough."""
    rows, following = choose_slice(known, reader.check_nodes)
    read = _append(reader, known)
    if isinstance(read, str):
        return read
    rows = np.union1d(rows, np.array(sorted(known.other_times), np.int64))
    known.other_times.clear()
    read = _check_slice(reader, known, read, rows)
    known.checked = following
    return read


def _check_slice(
    reader: GraphReader, known: Mirror, read: SyncResult, rows: NDArray[np.int64]
) -> SyncResult | str:
    """Compare some nodes with the graph; what two looks show is read again."""
    found = compare_slice(reader, known, rows) if len(rows) else SliceDifference()
    if not found:
        return read
    again = _append(reader, known)  # what was on its way has come
    if isinstance(again, str):
        return again
    found &= compare_slice(reader, known, rows)
    read = _both_reads(read, again)
    said = take_over(reader, known, found)
    if not said:
        return read
    if settle_accounts(reader, known, count_graph(reader.graph, reader.mapping)).types:
        odd = reread_relationships(reader, known)  # what hid it in the counts is elsewhere
        said += ["all relationships were read again", *odd]
    note = f"compared {len(rows)} nodes with the graph: {'; '.join(said)}"
    here = read.new_rows[known.present[read.new_rows]]
    return replace(read, new_rows=here, note="; ".join(part for part in (read.note, note) if part))


def _append(reader: GraphReader, known: Mirror) -> SyncResult | str:
    """Append what is new and account for it; a sentence where that isn't enough."""
    before = count_graph(reader.graph, reader.mapping)
    read = _read_new(reader, known)
    found = settle_accounts(reader, known, before)
    if not found:
        return read
    before = count_graph(reader.graph, reader.mapping)
    again = _read_new(reader, known)  # a second look: what was on its way has come
    found &= settle_accounts(reader, known, before)
    read = _both_reads(read, again)
    return _compare(reader, known, read, found) if found else read


def _both_reads(first: SyncResult, second: SyncResult) -> SyncResult:
    """Two reads of one mirror as one."""
    rows = np.concatenate([first.new_rows, second.new_rows])
    edges = first.new_edges + second.new_edges
    return replace(second, new_rows=rows, new_edges=edges, from_ns=first.from_ns)


def _compare(
    reader: GraphReader, known: Mirror, read: SyncResult, found: Difference
) -> SyncResult | str:
    """Compare keys, read what is missing, take out what is gone; a sentence where that fails."""
    first, edges = known.size, known.edge_count
    ids, rows = compare_keys(reader, known)
    gone = remove_gone(reader, known, rows)
    missed = read_missing(reader, known, ids)
    if found.nodes < 0 and not ids:
        return "nodes were missing, and no key is new"
    types = found.types
    if gone:  # their relationships went with them
        types = settle_accounts(reader, known, count_graph(reader.graph, reader.mapping)).types
    odd = reread_relationships(reader, known) if types else []
    before = count_graph(reader.graph, reader.mapping)
    read = replace(
        _read_new(reader, known),
        new_rows=read.new_rows,
        new_edges=read.new_edges,
        from_ns=read.from_ns,
    )  # what came meanwhile is no difference
    if settle_accounts(reader, known, before):
        return "the counts of nodes and relationships differ after a comparison of keys"
    names = [reader.mapping.relationships[index].type for index in sorted(types)]
    said = [f"{gone} nodes were deleted"] if gone else []
    said += [f"read {missed} nodes that had been missed"] if missed else []
    said += [f"read all relationships again ({', '.join(names)})"] if names else []
    said += odd
    note = f"the counts differed; compared all keys: {'; '.join(said) or 'nothing was missing'}"
    rows = np.concatenate([read.new_rows, np.arange(first, known.size)])
    rows = rows[known.present[rows]]
    changed = read.new_edges + max(known.edge_count - edges, 0)
    notes = "; ".join(part for part in (read.note, note) if part)
    return replace(read, new_rows=rows, new_edges=changed, note=notes)


def _read_whole(reader: GraphReader, name: str, why: str) -> SyncResult:
    """Read the whole graph; where there never was a mirror, go on with a read that died."""
    reader.is_first = not mirrors.exists(reader.folder, name)
    part = mirrors.load_part(reader.folder, name, MAX_PART_AGE_SECONDS) if reader.is_first else None
    if part is not None:
        had = part.size
        if finish_first_read(reader, part, count_nodes(reader.graph, reader.mapping)):
            read = _catch_up(reader, part)
            if not isinstance(read, str):
                part.sources_read = np.empty(0, np.uint8)
                why = f"{why}, continued: {had} nodes had been read before it was interrupted"
                return SyncResult(part, np.arange(part.size), part.edge_count, None, why, read.note)
        mirrors.forget_part(reader.folder)
    return _rebuild(reader, name, why)


def _rebuild(reader: GraphReader, name: str, why: str) -> SyncResult:
    graph, mapping = reader.graph, reader.mapping
    expected = count_nodes(graph, mapping)
    if expected == 0:
        raise GraphError(
            found=f"the graph has no :{mapping.label} nodes",
            needed="[graph] label of the nodes to predict",
            next_step="ringfence init   (lists the labels that exist)",
        )
    require_room(expected)
    first_read = not mirrors.exists(reader.folder, name)
    if first_read:
        check_time_types(graph, mapping, first_read=True, sample=SAMPLE_NODES)
    fresh, note = _fill_with_width(reader, name, expected)
    if first_read and (fresh.odd_relationships or fresh.size < MIN_SHARE_OF_KIND * expected):
        check_time_types(graph, mapping, first_read=True)  # the sample was unlike the rest
    if fresh.size + len(fresh.rejected) < expected:
        raise GraphError(
            found=f"{expected} :{mapping.label} nodes have only {fresh.size} different keys",
            needed=f"a unique {mapping.key}",
            next_step="ringfence migrate   (creates the constraint, or names the duplicates)",
        )
    return SyncResult(fresh, np.arange(fresh.size), fresh.edge_count, None, why, note)


def _fill_with_width(reader: GraphReader, name: str, expected: int) -> tuple[Mirror, str]:
    """Read all nodes with the width of a sample, and with that of most nodes where it differs.

    A width that more than half of all nodes have is the commonest one, and no scan need say so.
    """
    width = feature_width(reader.graph, reader.mapping, SAMPLE_NODES)
    fresh = mirrors.create(reader.folder, name, width)
    note = _fill_mirror(reader, fresh, expected)
    if 2 * fresh.size > expected:
        return fresh, note
    usual = feature_width(reader.graph, reader.mapping)
    if usual != width:
        fresh = mirrors.create(reader.folder, name, usual)
        note = _fill_mirror(reader, fresh, expected)
    return fresh, note


def _fill_mirror(reader: GraphReader, mirror: Mirror, expected: int) -> str:
    """The watermark is where this read begins: what comes meanwhile is left to the next one."""
    end = horizon(reader.graph)
    mirror.watermark_ns = end.watermark_ns
    open_accounts(reader, mirror)
    nodes = all_nodes(reader.graph, reader.mapping, mirror.width, reader.rows, expected)
    reader.add_nodes(mirror, nodes, expected)
    sources = all_relationships(reader.graph, reader.mapping, reader.rows, expected)
    reader.add_sources(mirror, sources)
    mirror.add_relationships([])
    mirror.sources_read = np.empty(0, np.uint8)
    mirror.odd_relationships, odd = find_odd_times(reader)
    return "; ".join(part for part in (end.note, *odd) if part)


def _read_new(reader: GraphReader, mirror: Mirror) -> SyncResult:
    """Nodes first: a relationship whose node is committed in between waits in the mirror."""
    end = horizon(reader.graph)
    from_ns = mirror.watermark_ns or 0
    since = from_ns - int(reader.overlap_seconds * NANOSECONDS)
    mirror.advance()
    first, done = mirror.size, 0
    _reread_quarantined(reader, mirror)
    fresh = count_nodes(reader.graph, reader.mapping) - mirror.node_count
    for block in prefetch(
        read_nodes(reader.graph, reader.mapping, mirror.width, since, reader.rows, fresh)
    ):
        mirror.add_nodes([block])
        done += len(block.keys) + len(block.rejected)
        reader.progress("nodes", done, 0)
    new_rows = np.arange(first, mirror.size)
    new_keys = [decode_key(key) for key in mirror.keys[first:]]
    before, done = mirror.edge_count, 0
    for part in prefetch(
        read_relationships(reader.graph, reader.mapping, since, new_keys, reader.rows)
    ):
        mirror.add_block(part)
        done += len(part.targets)
        reader.progress("relationships", done, 0)
    mirror.add_relationships([])
    mirror.watermark_ns = max(end.watermark_ns, from_ns)
    new_edges = mirror.edge_count - before
    return SyncResult(mirror, new_rows, new_edges, from_ns, "", end.note)


def _reread_quarantined(reader: GraphReader, mirror: Mirror) -> None:
    """Read quarantined nodes again; those that were repaired join with all their relationships."""
    waiting = list(mirror.rejected)
    if not waiting:
        return
    first = mirror.size
    mirror.rejected.clear()  # those that are still unusable come back with their reason
    for block in read_nodes_by_id(reader.graph, reader.mapping, mirror.width, waiting, reader.rows):
        mirror.add_nodes([block])
    for part in relationships_of(reader, mirror.keys[first:]):
        mirror.take_block(part)
