"""After every read: does the mirror account for each relationship that the graph counts?

A relation without creation times: what the graph counts is what was read and a gap, the
relationships of nodes that can't be used; a gap that changes is a difference. A relation with
creation times: what was created before the watermark is settled, and its number stays. Neo4j is
read-committed, so a number lies between two counts, and a difference is one that no such pair
explains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.connector.mirror.typed import TypedMirror
from ringfence.connector.neo4j.read.typed.counts import count_relation, count_since
from ringfence.connector.times import NANOSECONDS

if TYPE_CHECKING:
    from ringfence.connector.neo4j.read.typed.reader import TypedReader


def settled_until(reader: TypedReader, typed: TypedMirror) -> int:
    """Return where the next read begins; what was created before it is settled."""
    return (typed.base.watermark_ns or 0) - int(reader.overlap_seconds * NANOSECONDS)


def open_accounts(reader: TypedReader, typed: TypedMirror, before: dict[int, int]) -> None:
    """Begin anew after a whole read of relationships; `before` was counted when it began."""
    until = settled_until(reader, typed)
    typed.gaps, typed.base.settled = {}, {}
    for index, relation in enumerate(reader.mapping.relations):
        if relation.created_at:
            typed.base.settled[index] = (*_settled(reader, index, until), until)
        else:
            typed.gaps[index] = before[index] - _held(typed, index)


def settle_accounts(reader: TypedReader, typed: TypedMirror, before: dict[int, int]) -> set[int]:
    """Return the relations that don't add up after a read; where all do, move the accounts on."""
    until, wrong, moved = settled_until(reader, typed), set(), {}
    for index, relation in enumerate(reader.mapping.relations):
        if relation.created_at:
            low, high, bound = typed.base.settled[index]
            now = _settled(reader, index, bound)
            if now[1] < low or now[0] > high:
                wrong.add(index)
            moved[index] = (*_settled(reader, index, until), until)
        else:
            expected = _held(typed, index) + typed.gaps.get(index, 0)
            after = count_relation(reader.graph, reader.mapping, relation)
            if not min(before[index], after) <= expected <= max(before[index], after):
                wrong.add(index)
    if not wrong:
        typed.base.settled = moved
    return wrong


def count_relations(reader: TypedReader) -> dict[int, int]:
    """Return what the graph counts of each relation without creation times."""
    return {
        index: count_relation(reader.graph, reader.mapping, relation)
        for index, relation in enumerate(reader.mapping.relations)
        if not relation.created_at
    }


def _held(typed: TypedMirror, index: int) -> int:
    return (typed.base.raw_counts or {}).get(index, 0)


def _settled(reader: TypedReader, index: int, until_ns: int) -> tuple[int, int]:
    """Between which numbers those created before a time lie."""
    graph, mapping = reader.graph, reader.mapping
    relation = mapping.relations[index]
    first = count_relation(graph, mapping, relation)
    later = count_since(graph, mapping, relation, until_ns)
    low, high = sorted((first, count_relation(graph, mapping, relation)))
    return low - later, high - later
