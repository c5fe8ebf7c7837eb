"""Applies what a comparison showed to the mirror row by row: deletions, changes, relationships.

Nothing else is read again. A deleted node leaves a gap in the row space, so that every other row
keeps its number and what is kept for it. The accounts move by as many relationships as came and
went; where they don't add up then (parallel ones, or a deletion that something missed hid in the
counts), all relationships are read and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import CLASSIFIED, Mirror, RelatedBlock
from ringfence.connector.mirror.blocks import AnyBlock
from ringfence.connector.neo4j.read.accounting import correct_accounts
from ringfence.connector.neo4j.read.comparison import (
    Ends,
    SliceDifference,
    read_rows,
    rejected_keys,
)
from ringfence.connector.neo4j.read.reader import GraphReader, count_rejected

Rows = NDArray[np.int64]


def remove_gone(reader: GraphReader, mirror: Mirror, rows: Rows) -> int:
    """Remove nodes from the mirror that a second query, by key, doesn't find; return how many."""
    for block in read_rows(reader, mirror, rows):
        rows = np.setdiff1d(rows, mirror.find([*block.keys, *rejected_keys(block)]))
    _remove_nodes(reader, mirror, rows)
    if len(rows) and not reader.mapping.classified.created_at:
        mirror.seq = 0  # the record has to learn that they left: nothing else tells nodes apart
    return len(rows)


def set_aside(reader: GraphReader, mirror: Mirror, rows: Rows) -> int:
    """Move nodes that can't be used any more from the mirror to quarantine; return how many."""
    blocks = list(read_rows(reader, mirror, rows))
    _remove_nodes(reader, mirror, rows, in_graph=False)
    for block in blocks:
        if block.label == CLASSIFIED:
            mirror.rejected.update({bad.element_id: bad for bad in block.rejected})
        else:
            rejected = count_rejected(mirror, block.label) + len(block.rejected)
            mirror.context_rejected[block.label] = rejected
    return len(rows)


def replace_reused_keys(reader: GraphReader, mirror: Mirror) -> None:
    """A key of the classified label that came again with a later time is another node's.

    Keys that came with an earlier time stay among `other_times`: they are compared.
    """
    rows = np.array(sorted(mirror.other_times), np.int64)
    rows = rows[mirror.present[rows] & (mirror.labels[rows] == CLASSIFIED)]
    mirror.other_times.clear()
    for block in read_rows(reader, mirror, rows):
        here = mirror.find(block.keys)
        _remove_nodes(reader, mirror, here[block.created_ns > mirror.created_ns[here]])
        reader.add_block(mirror, block)


def apply_differences(
    reader: GraphReader, mirror: Mirror, difference: SliceDifference
) -> list[str]:
    """Update some rows of the mirror to what the graph has; return what was done."""
    notes = []
    if difference.gone and (count := remove_gone(reader, mirror, _rows(difference.gone))):
        notes.append(f"{count} nodes were deleted")
    if difference.unusable:
        count = set_aside(reader, mirror, _rows(difference.unusable))
        notes.append(f"{count} nodes can't be used any more")
    if difference.changed:
        rows = _rows(difference.changed)
        mirror.replace_nodes(list(_read_with_known_times(reader, mirror, rows)))
        notes.append(f"{len(rows)} nodes had changed")
    missing, deleted = _exchange_relationships(reader, mirror, difference)
    came, went, changed = _exchange_records(reader, mirror, difference)
    missing, deleted = missing + came, deleted + went
    if missing or deleted:
        notes.append(f"{missing} relationships were missing and {deleted} deleted")
    if changed:
        notes.append(f"{changed} relationships had changed")
    return notes


def _read_with_known_times(reader: GraphReader, mirror: Mirror, rows: Rows) -> Iterator[AnyBlock]:
    """Where the graph has no creation times, a node keeps the time that the mirror has."""
    for block in read_rows(reader, mirror, rows):
        if reader.mapping.nodes[block.label].created_at:
            yield block
        else:
            yield replace(block, created_ns=mirror.created_ns[mirror.find(block.keys)])


def _exchange_relationships(
    reader: GraphReader, mirror: Mirror, difference: SliceDifference
) -> tuple[int, int]:
    """Those of deleted nodes are gone with them already; return how many came and went."""
    mirror.advance()
    removed = mirror.remove_relationships(_ends(difference.deleted))
    correct_accounts(reader, mirror, _negative(removed))
    missed = _ends(difference.missed)
    added = mirror.add_ends(missed[:, mirror.present[missed[:2]].all(axis=0)])
    correct_accounts(reader, mirror, added)
    return sum(added.values()), sum(removed.values())


def _exchange_records(
    reader: GraphReader, mirror: Mirror, difference: SliceDifference
) -> tuple[int, int, int]:
    """Write relationships with columns as the graph has them; return how many came, went, changed.

    One that touches a node that is gone went with it.
    """
    came = went = changed = 0
    if mirror.related:
        mirror.advance()
    for index in mirror.related:
        written = [
            record
            for record in sorted(difference.written)
            if record[0] == index and mirror.present[[record[2], record[3]]].all()
        ]
        now = {record[1] for record in written}
        before = {record[1] for record in difference.lost if record[0] == index}
        numbers, sources, targets = (
            np.array([record[at] for record in written], np.int64) for at in (1, 2, 3)
        )
        block = RelatedBlock(numbers, sources, targets, [record[4] for record in written])
        gone = np.array(sorted(before - now), np.int64)
        added = mirror.related.exchange(index, block, gone, mirror.adjacency, mirror.version)
        correct_accounts(reader, mirror, {index: added})
        came, changed = came + len(now - before), changed + len(now & before)
        went += len(before - now)
    return came, went, changed


def _remove_nodes(reader: GraphReader, mirror: Mirror, rows: Rows, in_graph: bool = True) -> None:
    if len(rows):
        removed = mirror.remove_nodes(rows)
        correct_accounts(reader, mirror, _negative(removed), in_graph)


def _negative(counts: dict[int, int]) -> dict[int, int]:
    return {index: -count for index, count in counts.items()}


def _rows(rows: Iterable[int]) -> Rows:
    return np.array(sorted(rows), np.int64)


def _ends(ends: Iterable[Ends]) -> Rows:
    return np.array(sorted(ends), np.int64).reshape(-1, 3).T
