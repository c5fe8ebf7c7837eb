"""Bring the mirror of several labels up to date: what is new, or all where that isn't enough."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import is_compaction_due
from ringfence.connector.mirror.typed import TypedMirror, load_typed
from ringfence.connector.mirror.typed.mirror import CLASSIFIED
from ringfence.connector.neo4j.read.slices import choose_slice
from ringfence.connector.neo4j.read.typed.accounts import (
    count_relations,
    settle_accounts,
)
from ringfence.connector.neo4j.read.typed.append import append_new
from ringfence.connector.neo4j.read.typed.counts import count_label
from ringfence.connector.neo4j.read.typed.reader import TypedRead, TypedReader
from ringfence.connector.neo4j.read.typed.repair import exchange_relationships, remove_gone
from ringfence.connector.neo4j.read.typed.slices import (
    RowDifference,
    compare_relations,
    update_rows,
)
from ringfence.connector.neo4j.read.typed.whole import (
    read_all_relations,
    read_whole,
)

Ints = NDArray[np.int64]


def typed_identity(reader: TypedReader) -> str:
    """Return what a mirror must belong to: this database, these labels, keys and relations."""
    database = reader.graph.read("CALL db.info() YIELD id RETURN id")[0]["id"]
    nodes = [(node.label, node.key, node.column_names, node.created_at)
             for node in reader.mapping.nodes]  # fmt: skip
    relations = [
        (one.source, one.type, one.target, one.created_at) for one in reader.mapping.relations
    ]
    names = (nodes, relations, reader.mapping.class_property, reader.mapping.time_kind)
    return hashlib.sha256(f"{database}\ntyped\n{names!r}".encode()).hexdigest()[:32]


def sync_typed(reader: TypedReader, *, whole: bool = False) -> TypedRead:
    """Read what is new; read everything where asked to, or where the counts show a difference."""
    identity = typed_identity(reader)
    known = None if whole else load_typed(reader.folder, identity, reader.mapping)
    if known is None:
        return read_whole(reader, identity, "asked for" if whole else "first read")
    if is_compaction_due(known.base):
        return read_whole(reader, identity, "deleted nodes have left many gaps")
    rows, following = choose_slice(known.base, reader.check_nodes)
    read = _check_rows(reader, known, _catch_up(reader, known), rows)
    known.base.checked = following
    return read


def _catch_up(reader: TypedReader, typed: TypedMirror) -> TypedRead:
    """Append what is new and account for it, with a second look where the counts differ."""
    before = count_relations(reader)
    read = append_new(reader, typed)
    wrong = settle_accounts(reader, typed, before)
    if wrong or _nodes_are_missing(reader, typed):
        before = count_relations(reader)
        again = append_new(reader, typed, compare=True)
        read = _both(read, again)
        wrong &= settle_accounts(reader, typed, before)
    if wrong:
        _read_relations_again(reader, typed)
        names = [reader.mapping.describe(reader.mapping.relations[at]) for at in sorted(wrong)]
        note = f"the counts differed; read all relationships again ({', '.join(names)})"
        read = _noted(read, note)
    return read


def _check_rows(reader: TypedReader, typed: TypedMirror, read: TypedRead, rows: Ints) -> TypedRead:
    """Compare some rows with the graph; properties are taken as they are now."""
    rows = rows[typed.base.present[rows]]
    if not len(rows):
        return read
    found = _look_at(reader, typed, rows)
    if found.difference:
        read = _both(read, append_new(reader, typed))  # what was on its way has come
        rows = rows[typed.base.present[rows]]
        again = _look_at(reader, typed, rows).difference
        found = replace(found, difference=found.difference & again)
    said = [f"{found.changed} nodes had changed"] if found.changed else []
    said += _take_over(reader, typed, found.difference)
    if said:
        read = _noted(read, f"compared {len(rows)} nodes with the graph: {'; '.join(said)}")
    return read


def _take_over(reader: TypedReader, typed: TypedMirror, found: RowDifference) -> list[str]:
    """Bring the mirror to what two looks at the graph have shown; return what was done."""
    if not found:
        return []
    said = []
    if found.gone and (gone := remove_gone(reader, typed, np.array(sorted(found.gone)))):
        said.append(f"{gone} nodes were deleted")
    missed, deleted = exchange_relationships(typed, found.missed, found.deleted)
    if missed or deleted:
        said.append(f"{missed} relationships were missing and {deleted} deleted")
    before = count_relations(reader)
    if settle_accounts(reader, typed, before):
        _read_relations_again(reader, typed)  # what hid it in the counts is elsewhere
        said.append("all relationships were read again")
    return said


@dataclass(frozen=True, slots=True)
class _Look:
    changed: int
    difference: RowDifference


def _look_at(reader: TypedReader, typed: TypedMirror, rows: Ints) -> _Look:
    changed, gone = update_rows(reader, typed, rows)
    missed, deleted = compare_relations(reader, typed, rows)
    return _Look(len(changed), RowDifference(frozenset(gone.tolist()), missed, deleted))


def _read_relations_again(reader: TypedReader, typed: TypedMirror) -> None:
    nodes = [typed.count(label) for label in range(len(reader.mapping.nodes))]
    read_all_relations(reader, typed, nodes)


def _nodes_are_missing(reader: TypedReader, typed: TypedMirror) -> bool:
    """Whether the graph counts other nodes of the classified label than the mirror accounts for."""
    held = typed.count(CLASSIFIED) + len(typed.base.rejected)
    return count_label(reader.graph, reader.mapping.classified.label) != held


def _both(first: TypedRead, second: TypedRead) -> TypedRead:
    """Two reads of one mirror as one."""
    rows = np.concatenate([first.read.new_rows, second.read.new_rows])
    rows = rows[second.typed.base.present[rows]]
    edges = first.read.new_edges + second.read.new_edges
    read = replace(second.read, new_rows=rows, new_edges=edges, from_ns=first.read.from_ns)
    return replace(second, read=read, first_seen={**first.first_seen, **second.first_seen})


def _noted(read: TypedRead, note: str) -> TypedRead:
    notes = "; ".join(filter(None, (read.read.note, note)))
    return replace(read, read=replace(read.read, note=notes))
