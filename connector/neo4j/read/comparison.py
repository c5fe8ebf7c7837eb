"""The mirror compared with the graph: a rolling slice of nodes in every run, all keys on demand.

Deletions and missed rows that leave the counts equal show in no count, nor do changed properties.
So each run reads `check_nodes` nodes again, from where the last run stopped, and those that the
last run changed: key, creation time, class, properties, and the relationships that start there.
Where the counts differ, and where new nodes are keys not yet known, all keys of a label are
compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import CLASSIFIED, UNKNOWN, Mirror, context_key, plain_key
from ringfence.connector.mirror.blocks import AnyBlock
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.reader import GraphReader

Rows = NDArray[np.int64]
Ends = tuple[int, int, int]
"""A relationship by the rows of its source and target, and its relation."""
Record = tuple[int, int, int, int, bytes]
"""A relationship of a relation with columns: relation, number, rows of its ends, its values."""


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """Rows that are gone from the graph, can't be used any more, or changed; and relationships.

    Relationships with columns differ one by one: `written` are as the graph has them, `lost` as the
    mirror does; one that changed is in both.
    """

    gone: frozenset[int] = frozenset()
    unusable: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()
    missed: frozenset[Ends] = frozenset()
    deleted: frozenset[Ends] = frozenset()
    written: frozenset[Record] = frozenset()
    lost: frozenset[Record] = frozenset()

    def __bool__(self) -> bool:
        nodes = self.gone or self.unusable or self.changed
        return bool(nodes or self.missed or self.deleted or self.written or self.lost)

    def __and__(self, other: SliceDifference) -> SliceDifference:
        """The differences that both comparisons show."""
        return SliceDifference(
            self.gone & other.gone,
            self.unusable & other.unusable,
            self.changed & other.changed,
            self.missed & other.missed,
            self.deleted & other.deleted,
            self.written & other.written,
            self.lost & other.lost,
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
    seen: set[int] = set()
    unusable: set[int] = set()
    changed: set[int] = set()
    for block in read_rows(reader, mirror, rows):
        here = mirror.find(block.keys)
        changed.update(here[_differs(reader, mirror, here, block)].tolist())
        seen.update(here.tolist())
        unusable.update(mirror.find(rejected_keys(block)).tolist())
    now, held = _graph_ends(reader, mirror, rows), _mirror_ends(mirror, rows)
    records, known = _graph_records(reader, mirror, rows), _mirror_records(mirror, rows)
    gone = set(rows.tolist()) - seen - unusable
    return SliceDifference(
        frozenset(gone), frozenset(unusable), frozenset(changed), now - held, held - now,
        records - known, known - records,
    )  # fmt: skip


def read_rows(reader: GraphReader, mirror: Mirror, rows: Rows) -> Iterator[AnyBlock]:
    """Yield the nodes that have the keys of some rows, by label."""
    for label in np.unique(mirror.labels[rows]).tolist():
        yield from reader.label(mirror, label).read_by_key(keys_of(mirror, rows, label))


def keys_of(mirror: Mirror, rows: Rows, label: int) -> list[str]:
    """Return the typed keys of those of some rows that have a label, as the graph has them."""
    rows = rows[mirror.labels[rows] == label]
    return [plain_key(key) for key in mirror.keys.take(rows.tolist())]


def rejected_keys(block: AnyBlock) -> list[str]:
    """Return the mirror's keys of nodes that can't be used, as far as they have one."""
    keys = (bad.node_key for bad in block.rejected)
    return [context_key(block.label, key) for key in keys if key is not None]


def _differs(reader: GraphReader, mirror: Mirror, rows: Rows, block: AnyBlock) -> NDArray[np.bool_]:
    """A class that became known is left to the audit; one that changed or vanished is a change."""
    differs = mirror.tables[block.label].differs(mirror.places_of(rows), block)
    if reader.mapping.nodes[block.label].created_at:
        differs |= mirror.created_ns[rows] != block.created_ns
    if block.label != CLASSIFIED:
        return differs
    names = [None if i == UNKNOWN else mirror.class_names[i] for i in mirror.classes[rows].tolist()]
    pairs = zip(names, block.classes, strict=True)
    other = np.fromiter((a is not None and a != b for a, b in pairs), np.bool_, len(names))
    return np.asarray(differs | other)


def _graph_ends(reader: GraphReader, mirror: Mirror, rows: Rows) -> frozenset[Ends]:
    """What starts at these nodes now; relationships to nodes that aren't here wait elsewhere."""
    ends: set[Ends] = set()
    for index, relation in enumerate(reader.mapping.relations):
        keys = [] if relation.columns else keys_of(mirror, rows, relation.source)
        for block in reader.relation(index).read_of(keys):
            sources = np.repeat(mirror.rows_of(block.sources), block.target_counts)
            targets = mirror.rows_of(block.targets)
            here = (sources >= 0) & (targets >= 0)
            pairs = zip(sources[here].tolist(), targets[here].tolist(), strict=True)
            ends.update((source, target, index) for source, target in pairs)
    return frozenset(ends)


def _mirror_ends(mirror: Mirror, rows: Rows) -> frozenset[Ends]:
    source, target, kind = mirror.adjacency.starting_at(rows)
    ends = zip(source.tolist(), target.tolist(), kind.tolist(), strict=True)
    return frozenset(end for end in ends if end[2] not in mirror.related)


def _graph_records(reader: GraphReader, mirror: Mirror, rows: Rows) -> frozenset[Record]:
    """The relationships with columns that start at these nodes now."""
    records: set[Record] = set()
    for index in mirror.related:
        keys = keys_of(mirror, rows, reader.mapping.relations[index].source)
        for block in reader.relation(index).read_of(keys):
            sources = np.repeat(mirror.rows_of(block.sources), block.target_counts)
            columns = block.numbers, sources, mirror.rows_of(block.targets)
            listed = zip(*(column.tolist() for column in columns if column is not None),
                         block.texts, strict=True)  # fmt: skip
            records.update((index, n, a, b, text) for n, a, b, text in listed if min(a, b) >= 0)
    return frozenset(records)


def _mirror_records(mirror: Mirror, rows: Rows) -> frozenset[Record]:
    records: set[Record] = set()
    for index, table in mirror.related.items():
        places = table.places_from(rows)
        sources, targets = table.ends(places)
        columns = table.numbers.array[places].tolist(), sources.tolist(), targets.tolist()
        listed = zip(*columns, table.records.texts(places), strict=True)
        records.update((index, n, a, b, text) for n, a, b, text in listed)
    return frozenset(records)


@dataclass(frozen=True, slots=True)
class KeyComparison:
    """Ids of nodes that the mirror lacks, its rows whose keys the graph lacks; keys and seconds."""

    missing: list[str]
    gone: Rows
    scanned: int
    seconds: float


def compare_keys(reader: GraphReader, mirror: Mirror, label: int, expected: int) -> KeyComparison:
    """Scan all keys of a label, of which there are about `expected`."""
    started = time.perf_counter()
    seen = (mirror.labels != label) | mirror.keys.gone
    missing: list[str] = []
    scanned = 0
    for ids, keys in prefetch(reader.label(mirror, label).read_keys(expected)):
        rows = mirror.rows_of(keys)
        seen[rows[rows >= 0]] = True
        missing += [ids[place] for place in np.flatnonzero(rows < 0).tolist()]
        scanned += len(ids)
        reader.progress("keys", scanned, expected)
    return KeyComparison(missing, np.flatnonzero(~seen), scanned, time.perf_counter() - started)
