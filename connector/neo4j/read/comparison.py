"""Where the accounts differ: all keys are compared, and only what the mirror lacks is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.accounting import open_accounts
from ringfence.connector.neo4j.read.full import all_relationships
from ringfence.connector.neo4j.read.incremental import (
    RelationshipBlock,
    read_keys,
    read_nodes_by_id,
    read_relationships,
)
from ringfence.connector.neo4j.read.odd_times import find_odd_times
from ringfence.connector.neo4j.read.watermark import count_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ringfence.connector.neo4j.read.sync import GraphReader

Rows = NDArray[np.int64]
IDS_PER_QUERY = 100_000  # ids that one query is asked for


def compare_keys(reader: GraphReader, mirror: Mirror) -> tuple[list[str], Rows]:
    """Return the ids of nodes that the mirror lacks, and its rows whose keys the graph lacks."""
    seen = mirror.keys.gone.copy()
    missing: list[str] = []
    expected = count_nodes(reader.graph, reader.mapping)
    for ids, keys in prefetch(read_keys(reader.graph, reader.mapping, reader.rows, expected)):
        rows = mirror.rows_of(keys)
        seen[rows[rows >= 0]] = True
        missing += [ids[i] for i in np.flatnonzero(rows < 0).tolist()]
    return missing, np.flatnonzero(~seen)


def read_missing(reader: GraphReader, mirror: Mirror, ids: Sequence[str]) -> int:
    """Read nodes by their ids, with all their relationships; return how many joined the mirror.

    They may have been evaluated before: the flags are taken from SQL again.
    """
    first = mirror.size
    mirror.rejected = {one: bad for one, bad in mirror.rejected.items() if one not in set(ids)}
    for start in range(0, len(ids), IDS_PER_QUERY):
        part = ids[start : start + IDS_PER_QUERY]
        for block in read_nodes_by_id(
            reader.graph, reader.mapping, mirror.width, part, reader.rows
        ):
            mirror.add_nodes([block])
    for relationships in relationships_of(reader, mirror.keys[first:]):
        mirror.add_block(relationships)
    mirror.add_relationships([])
    if mirror.size > first:
        mirror.seq, mirror.members_of = 0, ""
    return mirror.size - first


def relationships_of(reader: GraphReader, keys: Sequence[str]) -> Iterator[RelationshipBlock]:
    """Yield all relationships that touch the nodes with these keys, whenever they were created."""
    if keys:
        kinds = tuple(replace(kind, created_at=None) for kind in reader.mapping.relationships)
        mapping = replace(reader.mapping, relationships=kinds)
        decoded = [decode_key(key) for key in keys]
        yield from read_relationships(reader.graph, mapping, 0, decoded, reader.rows)


def reread_relationships(reader: GraphReader, mirror: Mirror) -> list[str]:
    """Read all relationships anew; the nodes stay as they are. Return notes about odd times."""
    open_accounts(reader, mirror)
    mirror.replace_relationships(
        all_relationships(reader.graph, reader.mapping, reader.rows, mirror.node_count)
    )
    mirror.odd_relationships, notes = find_odd_times(reader)
    return notes
