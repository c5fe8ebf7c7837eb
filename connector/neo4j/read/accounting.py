"""Checks after every read that the mirror accounts for all nodes and relationships in the graph.

Nodes: the count store's number is what the mirror holds and what is in quarantine, up to what was
written while it was read. Nodes of context labels are read when relationships name them, or all of
them in every run, so only those of the classified label are accounted for.

A relation with creation times: what was created before the watermark is settled; its number only
grows by what the watermark passes. Deletions and relationships that came with an old time, or none,
change it, however many new ones come beside them. A relation without times: each relationship is
counted when it is read; those of nodes in quarantine, and a gap that the last whole read left (ends
of context that can't be used), are in the graph alone. Neo4j is read-committed, so a number lies
between two counts, and a difference is one that no such pair explains.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.mirror import CLASSIFIED, Mirror
from ringfence.connector.neo4j.read.counts import (
    Counts,
    count_at_nodes,
    count_graph,
    count_window,
    scan_relation,
)
from ringfence.connector.neo4j.read.reader import GraphReader

MAX_TRIES = 5  # of counting a relation while others write


@dataclass(frozen=True, slots=True)
class Difference:
    """What the counts show: nodes missing (-1) or too many (1), and relations that don't add up."""

    nodes: int = 0
    types: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.types)

    def __and__(self, other: Difference) -> Difference:
        """The differences that both counts show."""
        nodes = self.nodes if self.nodes == other.nodes else 0
        return Difference(nodes, self.types & other.types)


def open_accounts(reader: GraphReader, mirror: Mirror) -> Counts:
    """Reset the accounts of relations with creation times, before a whole read of relationships.

    What comes with an old time while that read goes on shows in the next one's account.
    """
    mirror.settled, mirror.gaps = {}, {}
    counts = count_graph(reader.graph, reader.mapping)
    mirror.relationship_count = counts.outgoing
    bound, after = reader.next_since_ns(mirror), counts
    for index in reader.timed_relations():
        settled = _count_settled(reader, index, bound, bound, after)
        after = settled.after
        mirror.settled[index] = (settled.low, settled.high, bound)
    return counts


def note_gaps(reader: GraphReader, mirror: Mirror, before: Counts) -> None:
    """Record which relationships a whole read that began with `before` did not bring.

    Where keys of context can't be used, the graph counts relationships that no read brings.
    """
    after = count_graph(reader.graph, reader.mapping)
    for index in _untimed(reader):
        relation, count = reader.mapping.relations[index], after.relations[index]
        if relation.source == relation.target == CLASSIFIED:
            continue
        least = min(before.relations[index].both, count.both)
        if not count.is_exact:
            least = scan_relation(reader.graph, reader.mapping, relation)
        mirror.gaps[index] = max(least - _held(reader, mirror, index), 0)


def settle_accounts(reader: GraphReader, mirror: Mirror, before: Counts) -> Difference:
    """Compare the counts with the mirror after a read; if all add up, advance the accounts."""
    counts = count_graph(reader.graph, reader.mapping)
    until = reader.next_since_ns(mirror)
    moved, wrong, after = {}, set(), counts
    for index in reader.timed_relations():
        known = mirror.settled.get(index)
        settled = _count_settled(reader, index, known[2] if known else until, until, after)
        after = settled.after
        low, high, _ = known or (settled.low, settled.high, until)
        low, high = max(settled.low, low), min(settled.high, high)
        if low > high:
            wrong.add(index)
        moved[index] = (low + settled.early, high + settled.early, until)
    nodes = _compare_nodes(mirror, before.classified, counts.classified)
    if counts == after and _held_nodes(mirror) == counts.classified:
        wrong |= _compare_untimed(reader, mirror, counts)
    difference = Difference(nodes, frozenset(wrong))
    if not difference:
        mirror.settled, mirror.relationship_count = moved, counts.outgoing
    return difference


def correct_accounts(
    reader: GraphReader, mirror: Mirror, added: dict[int, int], in_graph: bool = True
) -> None:
    """Count, by relation, what was added to the mirror (or, below 0, removed) by comparing rows.

    ``in_graph``: the graph's own number changed with it, which it does not where relationships
    are set aside with a quarantined node. A relationship counts as -1 for relations of the same
    type that have other labels at both ends, as in the counts.
    """
    relations = reader.mapping.relations
    for index, count in added.items():
        counted = mirror.raw_counts.get(index, 0) + count
        mirror.raw_counts[index] = mirror.related.count(index, counted)
        changed = relations[index]
        for other in mirror.settled if in_graph else ():
            relation = relations[other]
            if other == index:
                _move_account(mirror, other, count)
            elif relation.type == changed.type and not (
                relation.source == changed.source or relation.target == changed.target
            ):
                _move_account(mirror, other, -count)


def _move_account(mirror: Mirror, index: int, count: int) -> None:
    low, high, at = mirror.settled[index]
    mirror.settled[index] = (low + count, high + count, at)


def _untimed(reader: GraphReader) -> list[int]:
    timed = reader.timed_relations()
    return [index for index in range(len(reader.mapping.relations)) if index not in timed]


@dataclass(frozen=True, slots=True)
class _Settled:
    """Bounds of a relation's number of relationships that were created before a time.

    `early` of those created since then are before the next time; `after` are the last counts.
    """

    low: int
    high: int
    early: int
    after: Counts


def _count_settled(
    reader: GraphReader, index: int, since: int, until: int, before: Counts
) -> _Settled:
    """Count a relation in all and since a time, and in all again; beside writers several times.

    What is written between two counts leaves that much doubt, and so many deletions would hide
    in it. Each try bounds the same number, so that together they leave little or none.
    """
    relation, bounds = reader.mapping.relations[index], []
    for _ in range(MAX_TRIES):
        window = count_window(reader.graph, reader.mapping, relation, since, until)
        after = count_graph(reader.graph, reader.mapping)
        bounds.append(
            sorted(counts.relations[index].both - window.all for counts in (before, after))
        )
        low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
        if low >= high:
            break
        before = after
    return _Settled(low, high, window.early, after)


def _held_nodes(mirror: Mirror) -> int:
    return mirror.count(CLASSIFIED) + len(mirror.rejected)


def _compare_nodes(mirror: Mirror, before: int, after: int) -> int:
    held = _held_nodes(mirror)
    if held < min(before, after):
        return -1
    return 1 if held > max(before, after) else 0


def _compare_untimed(reader: GraphReader, mirror: Mirror, counts: Counts) -> set[int]:
    """Relations without times, at a moment when no node is on its way.

    If the type also joins nodes of other labels, its count is not enough; a scan decides.
    """
    wrong: set[int] = set()
    for index in _untimed(reader):
        held = _held(reader, mirror, index) + mirror.gaps.get(index, 0)
        relation = reader.mapping.relations[index]
        if counts.relations[index].both == held:
            continue
        if scan_relation(reader.graph, reader.mapping, relation) != held:
            wrong.add(index)
    return wrong


def _held(reader: GraphReader, mirror: Mirror, index: int) -> int:
    """Relationships that were read, and those that touch nodes in quarantine."""
    relation, quarantined = reader.mapping.relations[index], list(mirror.rejected)
    touched = count_at_nodes(reader.graph, reader.mapping, relation, quarantined)
    return mirror.raw_counts.get(index, 0) + touched
