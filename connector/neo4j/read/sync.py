"""Bring the mirror up to date with the graph: what is new, or all of it where that isn't enough."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import CLASSIFIED, Mirror
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.read.accounting import Difference, settle_accounts
from ringfence.connector.neo4j.read.append import (
    add_relationships_at,
    append_new,
    find_first_seen,
)
from ringfence.connector.neo4j.read.comparison import (
    SliceDifference,
    choose_slice,
    compare_keys,
    compare_slice,
)
from ringfence.connector.neo4j.read.counts import count_graph
from ringfence.connector.neo4j.read.reader import GraphReader, SyncResult
from ringfence.connector.neo4j.read.repair import apply_differences, remove_gone
from ringfence.connector.neo4j.read.resume import MAX_PART_AGE_SECONDS, finish_first_read
from ringfence.connector.neo4j.read.whole import read_whole, reread_relationships

Rows = NDArray[np.int64]


def mirror_identity(graph: Graph, mapping: GraphMapping) -> str:
    """Return what a mirror must belong to: this database, and the names that are read from it.

    Where the user may not ask for the database's id, it is the one of this name at this address.
    """
    known = graph.identity
    database = known.id if known else f"{graph.database} of {graph.uri}"
    return hashlib.sha256(f"{database}\n{mapping.names_to_read!r}".encode()).hexdigest()[:32]


def sync_mirror(reader: GraphReader, *, whole: bool = False) -> SyncResult:
    """Read what is new; read everything where asked to, or where the counts show a difference."""
    identity = mirror_identity(reader.graph, reader.mapping)
    known = None if whole else mirrors.load(reader.folder, identity)
    if known is None:
        return _read_whole(reader, identity, "asked for" if whole else _why(reader, identity))
    if mirrors.is_compaction_due(known):
        known = mirrors.compact(known, reader.folder)
    reader.sign(known)
    read = _catch_up(reader, known)
    return read_whole(reader, identity, read) if isinstance(read, str) else read


def _why(reader: GraphReader, identity: str) -> str:
    """Why no mirror is there to go on with: another process still writes it, or there is none."""
    writer = mirrors.writer_of(reader.folder, identity)
    return f"the mirror's files are in use by {writer}" if writer else "first read"


def _read_whole(reader: GraphReader, identity: str, why: str) -> SyncResult:
    """Read the whole graph; where there never was a mirror, go on with a read that died."""
    reader.is_first = not mirrors.exists(reader.folder, identity)
    part = None
    if reader.is_first:
        part = mirrors.load_part(reader.folder, identity, MAX_PART_AGE_SECONDS)
    if part is not None:
        read = _continue_first_read(reader, part, why)
        if read is not None:
            return read
        mirrors.forget_part(reader.folder)
    return read_whole(reader, identity, why)


def _continue_first_read(reader: GraphReader, part: Mirror, why: str) -> SyncResult | None:
    """Finish a read that died, then read what came since it began; None where that fails."""
    had, began_ns = part.size, part.watermark_ns or 0
    if not finish_first_read(reader, part):
        return None
    seen = find_first_seen(reader, part, np.arange(part.size), began_ns)
    read = _catch_up(reader, part)
    if isinstance(read, str):
        return None
    why = f"{why}, continued: {had} nodes had been read before it was interrupted"
    first_seen = {**seen, **read.first_seen}
    rows = part.rows_of_label(CLASSIFIED)
    return SyncResult(part, rows, part.edge_count, None, why, read.note, first_seen)


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


def _append(reader: GraphReader, known: Mirror) -> SyncResult | str:
    """Append what is new and account for it; a sentence where that isn't enough."""
    before = count_graph(reader.graph, reader.mapping)
    read = append_new(reader, known)
    difference = settle_accounts(reader, known, before)
    if not difference:
        return read
    before = count_graph(reader.graph, reader.mapping)
    read = read.joined_with(append_new(reader, known))  # what was on its way has come
    difference &= settle_accounts(reader, known, before)
    return _compare(reader, known, read, difference) if difference else read


def _compare(
    reader: GraphReader, known: Mirror, read: SyncResult, difference: Difference
) -> SyncResult | str:
    """Compare keys, read what is missing, take out what is gone; a sentence where that fails."""
    first, edges = known.size, known.edge_count
    expected = count_graph(reader.graph, reader.mapping).classified
    compared = compare_keys(reader, known, CLASSIFIED, expected)
    gone = remove_gone(reader, known, compared.gone)
    missed = _read_missing(reader, known, compared.missing)
    if difference.nodes < 0 and not compared.missing:
        return "nodes were missing, and no key is new"
    relations = difference.types
    if gone:  # their relationships went with them
        before = count_graph(reader.graph, reader.mapping)
        relations = settle_accounts(reader, known, before).types
    odd = reread_relationships(reader, known) if relations else []
    before = count_graph(reader.graph, reader.mapping)
    later = append_new(reader, known)  # what came meanwhile is no difference
    if settle_accounts(reader, known, before):
        return "the counts of nodes and relationships differ after a comparison of keys"
    names = [reader.describe(reader.mapping.relations[index]) for index in sorted(relations)]
    notes = [f"{gone} nodes were deleted"] if gone else []
    notes += [f"read {missed} nodes that had been missed"] if missed else []
    notes += [f"read all relationships again ({', '.join(names)})"] if names else []
    notes += odd
    rows = np.concatenate([read.new_rows, np.arange(first, known.size)])
    rows = rows[known.present[rows] & (known.labels[rows] == CLASSIFIED)]
    joined = replace(
        read.joined_with(later),
        new_rows=rows,
        new_edges=read.new_edges + max(known.edge_count - edges, 0),
    )
    told = "; ".join(notes) or "nothing was missing"
    return joined.noted(f"the counts differed; compared all keys: {told}")


def _read_missing(reader: GraphReader, known: Mirror, ids: list[str]) -> int:
    """Read nodes by their ids, with all their relationships; return how many joined the mirror.

    They may have been evaluated before: the flags are taken from SQL again.
    """
    first, asked = known.size, set(ids)
    known.rejected = {id_: bad for id_, bad in known.rejected.items() if id_ not in asked}
    for block in reader.label(known, CLASSIFIED, known.watermark_ns or 0).read_ids(ids):
        reader.add_block(known, block)
    missed = known.size - first
    add_relationships_at(reader, known, first)
    if missed:
        known.seq, known.members_of = 0, ""
    return missed


def _check_slice(
    reader: GraphReader, known: Mirror, read: SyncResult, rows: Rows
) -> SyncResult | str:
    """Compare some nodes with the graph; what two looks show is read again."""
    difference = compare_slice(reader, known, rows) if len(rows) else SliceDifference()
    if not difference:
        return read
    again = _append(reader, known)  # what was on its way has come
    if isinstance(again, str):
        return again
    difference &= compare_slice(reader, known, rows)
    read = read.joined_with(again)
    notes = apply_differences(reader, known, difference)
    if not notes:
        return read
    before = count_graph(reader.graph, reader.mapping)
    if settle_accounts(reader, known, before).types:
        odd = reread_relationships(reader, known)  # what hid it in the counts is elsewhere
        notes += ["all relationships were read again", *odd]
    here = read.new_rows[known.present[read.new_rows]]
    note = f"compared {len(rows)} nodes with the graph: {'; '.join(notes)}"
    return replace(read, new_rows=here).noted(note)
