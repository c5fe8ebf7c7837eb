"""A rolling slice: some of the mirror's nodes are compared with the graph in every run.

Deletions and missed rows that cancel in the counts show in no count, nor do changed properties. So
each run reads `check_nodes` nodes again, from where the last run stopped, and those that the last
run changed: key, creation time, class, features, and the relationships that start there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import UNKNOWN, Mirror
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import NodeBlock
from ringfence.connector.neo4j.read.incremental import node_blocks, read_relationships_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ringfence.connector.neo4j.read.sync import GraphReader

Rows = NDArray[np.int64]
Ends = tuple[int, int, int]
"""A relationship by the rows of its source and target, and its type."""


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """Rows that are gone from the graph, can't be used any more, or changed; and relationships."""

    gone: frozenset[int] = frozenset()
    unusable: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()
    missed: frozenset[Ends] = frozenset()
    deleted: frozenset[Ends] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.gone or self.unusable or self.changed or self.missed or self.deleted)

    def __and__(self, other: SliceDifference) -> SliceDifference:
        """What both looks show."""
        return SliceDifference(
            self.gone & other.gone,
            self.unusable & other.unusable,
            self.changed & other.changed,
            self.missed & other.missed,
            self.deleted & other.deleted,
        )


def choose_slice(mirror: Mirror, size: int) -> tuple[Rows, int]:
    """Return the rows to compare, and where the next slice begins; before anything new is read."""
    count = min(size, mirror.size)
    rows = (mirror.checked + np.arange(count)) % max(mirror.size, 1)
    latest = np.flatnonzero(mirror.adjacency.changed >= mirror.version)[:size]
    chosen = np.union1d(rows, latest)
    return chosen[mirror.present[chosen]], (mirror.checked + count) % max(mirror.size, 1)


def compare_slice(reader: GraphReader, mirror: Mirror, rows: Rows) -> SliceDifference:
    """Return how the graph differs from the mirror at these rows, as far as they are nodes."""
    rows = rows[mirror.present[rows]]
    keys = mirror.keys.take(rows.tolist())
    seen: set[int] = set()
    unusable: set[int] = set()
    changed: set[int] = set()
    for block in read_nodes_by_key(reader, mirror, keys):
        here = mirror.find(block.keys)
        changed.update(here[_differs(mirror, here, block)].tolist())
        seen.update(here.tolist())
        rejected = [bad.node_key for bad in block.rejected if bad.node_key is not None]
        unusable.update(mirror.find(rejected).tolist())
    now, held = _graph_ends(reader, mirror, keys), _mirror_ends(mirror, rows)
    gone = set(rows.tolist()) - seen - unusable
    return SliceDifference(
        frozenset(gone), frozenset(unusable), frozenset(changed), now - held, held - now
    )


def read_nodes_by_key(
    reader: GraphReader, mirror: Mirror, keys: Sequence[str]
) -> Iterator[NodeBlock]:
    """Yield the nodes that have these typed keys."""
    where = f"WHERE n.{quote(reader.mapping.key)} IN $keys"
    for start in range(0, len(keys), reader.rows):
        part = [decode_key(key) for key in keys[start : start + reader.rows]]
        yield from node_blocks(
            reader.graph, reader.mapping, mirror.width, reader.rows, where, keys=part
        )


def _differs(mirror: Mirror, rows: Rows, block: NodeBlock) -> NDArray[np.bool_]:
    """A class that became known is the audit's business; one that changed or went is a change."""
    differs = (mirror.features[rows] != block.features).any(axis=1)
    differs |= mirror.created_ns[rows] != block.created_ns
    names = [None if i == UNKNOWN else mirror.class_names[i] for i in mirror.classes[rows].tolist()]
    pairs = zip(names, block.classes, strict=True)
    other = np.fromiter((a is not None and a != b for a, b in pairs), np.bool_, len(names))
    return np.asarray(differs | other)


def _graph_ends(reader: GraphReader, mirror: Mirror, keys: list[str]) -> frozenset[Ends]:
    """What starts at these nodes now; relationships to nodes that aren't here wait elsewhere."""
    found: set[Ends] = set()
    decoded = [decode_key(key) for key in keys]
    for index in range(len(reader.mapping.relationships)):
        for block in read_relationships_from(
            reader.graph, reader.mapping, index, decoded, reader.rows
        ):
            sources = np.repeat(
                mirror.rows_of(block.sources), 1 if block.counts is None else block.counts
            )
            targets = mirror.rows_of(block.targets)
            here = (sources >= 0) & (targets >= 0)
            found.update(
                (a, b, index)
                for a, b in zip(sources[here].tolist(), targets[here].tolist(), strict=True)
            )
    return frozenset(found)


def _mirror_ends(mirror: Mirror, rows: Rows) -> frozenset[Ends]:
    source, target, kind = mirror.adjacency.starting_at(rows)
    return frozenset(zip(source.tolist(), target.tolist(), kind.tolist(), strict=True))
