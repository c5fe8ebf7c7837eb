"""What a comparison showed is taken over row by row: deletions, changes, relationships.

Nothing else is read again. The accounts move by as many relationships as came and went; where they
don't add up then (parallel ones, or a deletion that something missed hid in the counts), all
relationships are read and compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.accounting import correct_accounts
from ringfence.connector.neo4j.read.slices import SliceDifference, read_nodes_by_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ringfence.connector.neo4j.read.slices import Ends
    from ringfence.connector.neo4j.read.sync import GraphReader

Rows = NDArray[np.int64]


def remove_gone(reader: GraphReader, mirror: Mirror, rows: Rows) -> int:
    """Take nodes out of the mirror that a second look, by key, doesn't find; return how many."""
    keys = mirror.keys.take(rows.tolist())
    for block in read_nodes_by_key(reader, mirror, keys):
        rejected = [bad.node_key for bad in block.rejected if bad.node_key is not None]
        rows = np.setdiff1d(rows, mirror.find([*block.keys, *rejected]))
    if len(rows):
        removed = mirror.remove_nodes(rows)
        correct_accounts(mirror, {kind: -count for kind, count in removed.items()})
    return len(rows)


def set_aside(reader: GraphReader, mirror: Mirror, rows: Rows) -> int:
    """Move nodes that can't be used any more from the mirror to quarantine; return how many."""
    keys = mirror.keys.take(rows.tolist())
    removed = mirror.remove_nodes(rows)
    taken = {kind: -count for kind, count in removed.items()}
    correct_accounts(mirror, taken, in_graph=False)
    for block in read_nodes_by_key(reader, mirror, keys):
        mirror.rejected.update({bad.element_id: bad for bad in block.rejected})
    return len(rows)


def take_over(reader: GraphReader, mirror: Mirror, found: SliceDifference) -> list[str]:
    """Bring the mirror to what the graph has at some rows; return what was done."""
    said = []
    if found.gone and (count := remove_gone(reader, mirror, _rows(found.gone))):
        said.append(f"{count} nodes were deleted")
    if found.unusable:
        count = set_aside(reader, mirror, _rows(found.unusable))
        said.append(f"{count} nodes can't be used any more")
    if found.changed:
        keys = mirror.keys.take(sorted(found.changed))
        mirror.replace_nodes(list(read_nodes_by_key(reader, mirror, keys)))
        said.append(f"{len(keys)} nodes had changed")
    missing, deleted = _exchange_relationships(mirror, found)
    if missing or deleted:
        said.append(f"{missing} relationships were missing and {deleted} deleted")
    return said


def _exchange_relationships(mirror: Mirror, found: SliceDifference) -> tuple[int, int]:
    """Those of deleted nodes are gone with them already; return how many came and went."""
    mirror.advance()
    removed = mirror.remove_relationships(_ends(found.deleted))
    correct_accounts(mirror, {kind: -count for kind, count in removed.items()})
    missed = _ends(found.missed)
    added = mirror.add_ends(missed[:, mirror.present[missed[:2]].all(axis=0)])
    correct_accounts(mirror, added)
    return sum(added.values()), sum(removed.values())


def _rows(found: Iterable[int]) -> Rows:
    return np.array(sorted(found), np.int64)


def _ends(found: Iterable[Ends]) -> Rows:
    return np.array(sorted(found), np.int64).reshape(-1, 3).T
