"""After every read: does the mirror account for each node and relationship that the graph counts?

Nodes: the count store's number is what the mirror holds and what is in quarantine, up to what was
written while it was read. A type with creation times: what was created before the watermark is
settled; its number only grows by what the watermark passes. Deletions and relationships that came
with an old time, or none, change it, however many new ones come beside them. A type without times:
each relationship is counted when it is read. Neo4j is read-committed, so a number lies between two
counts, and a difference is one that no such pair explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.counts import (
    Counts,
    Window,
    count_graph,
    count_of_quarantined,
    count_window,
    scan_type,
)
from ringfence.connector.times import NANOSECONDS

if TYPE_CHECKING:
    from ringfence.connector.neo4j.read.sync import GraphReader


@dataclass(frozen=True, slots=True)
class Difference:
    """What the counts show: nodes missing (-1) or too many (1), and types that don't add up."""

    nodes: int = 0
    types: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.types)

    def __and__(self, other: Difference) -> Difference:
        """What both looks show."""
        nodes = self.nodes if self.nodes == other.nodes else 0
        return Difference(nodes, self.types & other.types)


def next_since_ns(reader: GraphReader, mirror: Mirror) -> int:
    """Return where the next read begins; what was created before it is settled."""
    return (mirror.watermark_ns or 0) - int(reader.overlap_seconds * NANOSECONDS)


def open_accounts(reader: GraphReader, mirror: Mirror) -> None:
    """Begin anew with types that have creation times; before a whole read of relationships.

    What comes with an old time while that read goes on shows in the next one's account.
    """
    mirror.settled = {}
    counts = count_graph(reader.graph, reader.mapping)
    mirror.relationship_count = counts.outgoing
    bound = next_since_ns(reader, mirror)
    windows = _windows(reader, dict.fromkeys(_timed(reader), bound), bound)
    after = count_graph(reader.graph, reader.mapping)
    for index, window in windows.items():
        low, high = sorted((counts.both[index], after.both[index]))
        mirror.settled[index] = (low - window.all, high - window.all, bound)


def settle_accounts(reader: GraphReader, mirror: Mirror, before: Counts) -> Difference:
    """Compare the counts with the mirror after a read; where all add up, move the accounts on."""
    counts = count_graph(reader.graph, reader.mapping)
    until = next_since_ns(reader, mirror)
    bounds = {
        index: mirror.settled[index][2] if index in mirror.settled else until
        for index in _timed(reader)
    }
    windows = _windows(reader, bounds, until)
    after = count_graph(reader.graph, reader.mapping) if windows else counts
    moved, wrong = {}, set()
    for index, window in windows.items():
        low, high = sorted((counts.both[index] - window.all, after.both[index] - window.all))
        known = mirror.settled.get(index, (low, high, until))
        low, high = max(low, known[0]), min(high, known[1])
        if low > high:
            wrong.add(index)
        moved[index] = (low + window.early, high + window.early, until)
    nodes = _compare_nodes(mirror, before.nodes, counts.nodes)
    if counts == after and mirror.size + len(mirror.rejected) == counts.nodes:
        wrong |= _compare_untimed(reader, mirror, counts)
    found = Difference(nodes, frozenset(wrong))
    if not found:
        mirror.settled, mirror.relationship_count = moved, counts.outgoing
    return found


def _timed(reader: GraphReader) -> list[int]:
    kinds = enumerate(reader.mapping.relationships)
    return [index for index, kind in kinds if kind.created_at is not None]


def _windows(reader: GraphReader, bounds: dict[int, int], until: int) -> dict[int, Window]:
    kinds = reader.mapping.relationships
    return {
        index: count_window(reader.graph, reader.mapping, kinds[index], since, until)
        for index, since in bounds.items()
    }


def _compare_nodes(mirror: Mirror, before: int, after: int) -> int:
    held = mirror.size + len(mirror.rejected)
    if held < min(before, after):
        return -1
    return 1 if held > max(before, after) else 0


def _compare_untimed(reader: GraphReader, mirror: Mirror, counts: Counts) -> set[int]:
    """Types without times, at a moment when no node is on its way.

    Where the type also joins nodes without the label, its count says too little; a scan decides.
    """
    graph, mapping = reader.graph, reader.mapping
    wrong: set[int] = set()
    quarantined = list(mirror.rejected)
    if mirror.raw_counts is None:  # a mirror that an older version saved: trusted as it is
        mirror.raw_counts = {}
        for index, kind in enumerate(mapping.relationships):
            touched = count_of_quarantined(graph, mapping, kind, quarantined)
            mirror.raw_counts[index] = counts.both[index] - touched
        return wrong
    for index, kind in enumerate(mapping.relationships):
        if kind.created_at is not None:
            continue
        touched = count_of_quarantined(graph, mapping, kind, quarantined)
        held = mirror.raw_counts.get(index, 0) + touched
        if counts.both[index] != held and scan_type(graph, mapping, kind) != held:
            wrong.add(index)
    return wrong
