"""Relationships between two labels, by the keys of their ends: all, new ones, or of some nodes.

Properties that are columns come with them. As with nodes a query trusts the values first; where one
of them can't travel, all are asked for again and each is checked by the server.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping, RelationMapping
from ringfence.connector.mirror import RelationshipBlock, TypedKeys
from ringfence.connector.mirror.raw_table import encode_columns
from ringfence.connector.mirror.related.table import number_of
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import mirror_keys
from ringfence.connector.neo4j.read.id_ranges import IdRange, relationship_ranges
from ringfence.connector.neo4j.read.properties import IN_RANGE, REFUSALS
from ringfence.connector.neo4j.read.streams import RECORDS_IN_FLIGHT, Share
from ringfence.connector.neo4j.read.values import plain_column
from ringfence.connector.neo4j.read.vectors import cypher_prefix
from ringfence.connector.neo4j.times import as_parameter

# Anchored at the end with more nodes: one record holds what so many nodes have, and a hub at the
# other end would bring all its relationships at once.
ALL = """
MATCH (n:{anchor}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [n IN part | n.{anchor_key}] AS anchors, [n IN part | [{pattern} | {value}]] AS others
"""

OF_KEYS = """
UNWIND $keys AS key
MATCH (n:{anchor} {{{anchor_key}: key}})
RETURN collect(n.{anchor_key}) AS anchors, collect([{pattern} | {value}]) AS others
"""

# The ends' labels are asked afterwards: where many relationships share a creation time (an import)
# the planner takes `>= $since` for most of them, and would scan the label and expand every node.
SINCE = """
MATCH ()-[r:{type}]->() {where}
WITH r WHERE startNode(r):{source} AND endNode(r):{target}
WITH collect(r) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [r IN part | startNode(r).{source_key}] AS sources,
  [r IN part | endNode(r).{target_key}] AS targets{values}
"""


AS_THEY_ARE = "{0}"


@dataclass(frozen=True, slots=True)
class RelatedValues:
    """What each relationship [m] of a block has besides its ends; nothing without columns."""

    numbers: NDArray[np.int64] | None = None
    texts: Sequence[bytes] = field(default=())


NO_VALUES = RelatedValues()


@dataclass(frozen=True, slots=True)
class RelationReader:
    """Reads one relation of a mapping."""

    graph: Graph
    mapping: GraphMapping
    index: int
    rows: int

    @property
    def relation(self) -> RelationMapping:
        """Its type, and the places of its labels."""
        return self.mapping.relations[self.index]

    def read_share(
        self, share: Share, ranges: Sequence[IdRange], from_target: bool = False
    ) -> Generator[RelationshipBlock, None, None]:
        """Yield all of one stream's share, collected at their sources or at their targets."""

        def read(way: str) -> Generator[RelationshipBlock, None, None]:
            for part in ranges:
                where, parameters = share.within(part)
                query = ALL.format(**self._names(from_target, way), where=where)
                asked = {"rows": self.rows, **parameters}
                for record in self.graph.stream(
                    f"{cypher_prefix(self.graph)} {query}", RECORDS_IN_FLIGHT, **asked
                ):
                    yield self._block(record["anchors"], record["others"], from_target)

        yield from read_in_ways(self.relation, read)

    def read_of(
        self, keys: Sequence[str], from_target: bool = False
    ) -> Generator[RelationshipBlock, None, None]:
        """Yield those that start at (or point to) the nodes with these typed keys."""

        def read(way: str) -> Generator[RelationshipBlock, None, None]:
            query = OF_KEYS.format(**self._names(from_target, way))
            for start in range(0, len(keys), self.rows):
                part = [decode_key(key) for key in keys[start : start + self.rows]]
                (record,) = self.graph.read(query, keys=part)
                yield self._block(record["anchors"], record["others"], from_target)

        yield from read_in_ways(self.relation, read)

    def read_since(self, since_ns: int) -> Generator[RelationshipBlock, None, None]:
        """Yield those created at `since_ns` or later."""

        def read(way: str) -> Generator[RelationshipBlock, None, None]:
            for query, parameters in self.since_queries(since_ns, way):
                asked = {"rows": self.rows, **parameters}
                for record in self.graph.stream(query, RECORDS_IN_FLIGHT, **asked):
                    source_keys, target_keys, *values = record.values()
                    sources, targets = self._keys(source_keys, target_keys)
                    related = related_values(values[0], values[1:]) if values else NO_VALUES
                    yield RelationshipBlock(
                        self.index, sources, targets, numbers=related.numbers, texts=related.texts
                    )

        yield from read_in_ways(self.relation, read)

    def since_queries(
        self, since_ns: int, way: str = AS_THEY_ARE
    ) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield queries, with parameters, for what is new; many of them in ranges of ids."""
        source, target = (self.mapping.nodes[label] for label in self._ends)
        names = {
            "type": quote(self.relation.type),
            "source": quote(source.label),
            "target": quote(target.label),
            "source_key": quote(source.key),
            "target_key": quote(target.key),
            "values": "".join(
                f",\n  [r IN part | {value}] AS v{place}"
                for place, value in enumerate(expressions(self.relation, way))
            ),
        }
        where = f"WHERE r.{quote(str(self.relation.created_at))} >= $since"
        since: dict[str, object] = {"since": as_parameter(self.mapping.time_kind, since_ns)}
        for part in relationship_ranges(self.graph, self.relation.type, where, since):
            query = SINCE.format(**names, where=part.where(where, "r"))
            yield query, {**since, **part.parameters}

    @property
    def _ends(self) -> tuple[int, int]:
        return self.relation.source, self.relation.target

    def _names(self, from_target: bool, way: str) -> dict[str, str]:
        ends = self._ends[::-1] if from_target else self._ends
        anchor, other = (self.mapping.nodes[label] for label in ends)
        left, right = ("<-", "-") if from_target else ("-", "->")
        type_, label = quote(self.relation.type), quote(other.label)
        key, values = f"o.{quote(other.key)}", expressions(self.relation, way)
        return {
            "anchor": quote(anchor.label),
            "anchor_key": quote(anchor.key),
            "value": f"[{', '.join([key, *values])}]" if values else key,
            "pattern": f"(n){left}[{'r' if values else ''}:{type_}]{right}(o:{label})",
        }

    def _block(
        self, anchors: list[Any], others: list[list[Any]], from_target: bool
    ) -> RelationshipBlock:
        flat, related = list(chain.from_iterable(others)), NO_VALUES
        if self.relation.columns:
            empty: list[list[Any]] = [[] for _ in range(2 + len(self.relation.columns))]
            flat, ids, *columns = map(list, zip(*flat, strict=True)) if flat else empty
            related = related_values(ids, columns)
        numbers, texts = related.numbers, related.texts
        if not from_target:
            sources, targets = self._keys(anchors, flat)
            counts = np.fromiter(map(len, others), np.int64, len(others))
            return RelationshipBlock(
                self.index, sources, targets, counts, numbers=numbers, texts=texts
            )
        repeated = [
            anchor
            for anchor, group in zip(anchors, others, strict=True)
            for _ in repeat(None, len(group))
        ]
        sources, targets = self._keys(flat, repeated)
        read_at = mirror_keys(self.relation.target, anchors)
        return RelationshipBlock(
            self.index, sources, targets, anchors=read_at, numbers=numbers, texts=texts
        )

    def _keys(self, sources: list[Any], targets: list[Any]) -> tuple[TypedKeys, TypedKeys]:
        return mirror_keys(self.relation.source, sources), mirror_keys(
            self.relation.target, targets
        )


def read_in_ways(
    relation: RelationMapping,
    read: Callable[[str], Generator[RelationshipBlock, None, None]],
) -> Generator[RelationshipBlock, None, None]:
    """Yield what `read` does with the first way to ask for a value that the server accepts.

    Relationships that were yielded before come twice then: a mirror knows them by their ids.
    """
    if relation.columns:
        try:
            yield from read(AS_THEY_ARE)
        except REFUSALS:
            yield from read(IN_RANGE)
    else:
        yield from read(AS_THEY_ARE)


def expressions(relation: RelationMapping, way: str) -> list[str]:
    """Return the element id of a relationship `r` and its values, as Cypher.

    >>> from ringfence.connector.mapping import ColumnMapping
    >>> expressions(RelationMapping(0, "PAID", 0, columns=(ColumnMapping("sum"),)), AS_THEY_ARE)
    ['elementId(r)', 'r.`sum`']
    """
    names = relation.column_names
    return ["elementId(r)", *(way.format(f"r.{quote(name)}") for name in names)] if names else []


def related_values(ids: Sequence[str], columns: Sequence[list[Any]]) -> RelatedValues:
    """Return numbers and records of relationships, by their ids and columns."""
    numbers = np.fromiter(map(number_of, ids), np.int64, len(ids))
    return RelatedValues(numbers, encode_columns([plain_column(c) for c in columns], len(ids)))
