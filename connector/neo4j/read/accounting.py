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
    count_graph,
    count_of_quarantined,
    count_window,
    scan_type,
)
from ringfence.connector.times import NANOSECONDS

if TYPE_CHECKING:
    from ringfence.connector.neo4j.read.sync import GraphReader

MAX_TRIES = 5  # of counting a type while others write


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
    for index in _timed(reader):
        settled = _count_settled(reader, index, bound, bound, counts)
        counts = settled.after
        mirror.settled[index] = (settled.low, settled.high, bound)


def settle_accounts(reader: GraphReader, mirror: Mirror, before: Counts) -> Difference:
    """Compare the counts with the mirror after a read; where all add up, move the accounts on."""
    counts = count_graph(reader.graph, reader.mapping)
    until = next_since_ns(reader, mirror)
    bounds = {
        index: mirror.settled[index][2] if index in mirror.settled else until
        for index in _timed(reader)
    }
    moved, wrong, after = {}, set(), counts
    for index, since in bounds.items():
        settled = _count_settled(reader, index, since, until, after)
        after = settled.after
        known = mirror.settled.get(index, (settled.low, settled.high, until))
        low, high = max(settled.low, known[0]), min(settled.high, known[1])
        if low > high:
            wrong.add(index)
        moved[index] = (low + settled.early, high + settled.early, until)
    nodes = _compare_nodes(mirror, before.nodes, counts.nodes)
    if counts == after and mirror.node_count + len(mirror.rejected) == counts.nodes:
        wrong |= _compare_untimed(reader, mirror, counts)
    found = Difference(nodes, frozenset(wrong))
    if not found:
        mirror.settled, mirror.relationship_count = moved, counts.outgoing
    return found


def correct_accounts(mirror: Mirror, added: dict[int, int], in_graph: bool = True) -> None:
    """Count, by type, what was added to the mirror (or, below 0, removed) by comparing rows.

    ``in_graph``: the graph's own number changed with it, which it does not where relationships
    are set aside with a quarantined node.
    """
    for index, count in added.items():
        if mirror.raw_counts is not None:
            mirror.raw_counts[index] = mirror.raw_counts.get(index, 0) + count
        if in_graph and index in mirror.settled:
            low, high, at = mirror.settled[index]
            mirror.settled[index] = (low + count, high + count, at)


def _timed(reader: GraphReader) -> list[int]:
    kinds = enumerate(reader.mapping.relationships)
    return [index for index, kind in kinds if kind.created_at is not None]


@dataclass(frozen=True, slots=True)
class _Settled:
    """Between which numbers a type's count of what was created before a time lies.

    `early` of those created since then are before the next time; `after` are the last counts.
    """

    low: int
    high: int
    early: int
    after: Counts


def _count_settled(
    reader: GraphReader, index: int, since: int, until: int, before: Counts
) -> _Settled:
    """Count a type in all and since a time, and in all again; beside writers several times.

    What is written between two counts leaves that much doubt, and so many deletions would hide
    in it. Each try bounds the same number, so that together they leave little or none.
    """
    kind, bounds = reader.mapping.relationships[index], []
    for _ in range(MAX_TRIES):
        window = count_window(reader.graph, reader.mapping, kind, since, until)
        after = count_graph(reader.graph, reader.mapping)
        bounds.append(sorted(all_.both[index] - window.all for all_ in (before, after)))
        low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
        if low >= high:
            break
        before = after
    return _Settled(low, high, window.early, after)


def _compare_nodes(mirror: Mirror, before: int, after: int) -> int:
    held = mirror.node_count + len(mirror.rejected)
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
