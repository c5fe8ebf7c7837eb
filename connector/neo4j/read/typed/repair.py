"""What is gone or differs is taken over row by row; nothing else is read again.

A deleted node leaves a gap in the row space, so that every other row keeps its number and what is
kept for it. The accounts move by as many relationships as went; where they don't add up then (as
with parallel ones), all relationships are read and compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.typed import TypedMirror
from ringfence.connector.mirror.typed.mirror import CLASSIFIED, context_keys, plain_key
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.accounting import correct_accounts
from ringfence.connector.neo4j.read.columns import typed_keys
from ringfence.connector.neo4j.read.typed.whole import add_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ringfence.connector.neo4j.read.typed.reader import TypedReader
    from ringfence.connector.neo4j.read.typed.slices import Ends

Ints = NDArray[np.int64]
KEYS_PER_RECORD = 50_000


def remove_gone(reader: TypedReader, typed: TypedMirror, rows: Ints) -> int:
    """Take nodes out that a second look, by key, doesn't find; return how many."""
    for label in np.unique(typed.labels[rows]).tolist():
        mine = rows[typed.labels[rows] == label]
        for block in reader.label(label).read_by_key(keys_of(typed, mine)):
            rows = np.setdiff1d(rows, typed.base.find(block.keys))
    if len(rows):
        removed = typed.remove_nodes(rows)
        correct_accounts(typed.base, {kind: -count for kind, count in removed.items()})
    return len(rows)


def remove_deleted_of_label(reader: TypedReader, typed: TypedMirror, label: int) -> int:
    """Scan the keys of a label and take out the nodes that it has no more; return how many."""
    seen = (typed.labels != label) | ~typed.base.present
    for _, keys in prefetch(reader.label(label).read_keys(KEYS_PER_RECORD)):
        rows = typed.base.rows_of(context_keys(label, typed_keys(keys)))
        seen[rows[rows >= 0]] = True
    return remove_gone(reader, typed, np.flatnonzero(~seen))


def exchange_relationships(
    typed: TypedMirror, missed: Iterable[Ends], deleted: Iterable[Ends]
) -> tuple[int, int]:
    """Add and take out relationships by rows; return how many came and went."""
    typed.base.advance()
    removed = typed.base.remove_relationships(_as_array(deleted))
    correct_accounts(typed.base, {kind: -count for kind, count in removed.items()})
    ends = _as_array(missed)
    added = typed.base.add_ends(ends[:, typed.base.present[ends[:2]].all(axis=0)])
    correct_accounts(typed.base, added)
    return sum(added.values()), sum(removed.values())


def replace_reused_keys(reader: TypedReader, typed: TypedMirror) -> None:
    """A key of the classified label that came again with a later time is another node's."""
    rows = np.array(sorted(typed.base.other_times), np.int64)
    typed.base.other_times.clear()
    rows = rows[typed.base.present[rows] & (typed.labels[rows] == CLASSIFIED)]
    for block in reader.label(CLASSIFIED).read_by_key(keys_of(typed, rows)):
        here = typed.base.find(block.keys)
        here = here[block.created_ns > typed.base.created_ns[here]]
        removed = typed.remove_nodes(here)
        correct_accounts(typed.base, {kind: -count for kind, count in removed.items()})
        add_nodes(reader, typed, block)


def keys_of(typed: TypedMirror, rows: Ints) -> list[str]:
    """Return the typed keys of some rows, as the graph has them."""
    return [plain_key(key) for key in typed.base.keys.take(rows.tolist())]


def _as_array(ends: Iterable[Ends]) -> Ints:
    return np.array(sorted(ends), np.int64).reshape(-1, 3).T
