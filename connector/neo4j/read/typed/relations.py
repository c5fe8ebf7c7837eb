"""Relationships between labels, as pairs of keys in the mirror: all, new ones, or of some nodes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import RelationMapping, TypedMapping
from ringfence.connector.mirror.typed.mirror import context_keys
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import typed_keys
from ringfence.connector.neo4j.read.id_ranges import id_ranges, relationship_ranges
from ringfence.connector.neo4j.read.incremental import (
    RECORDS_IN_FLIGHT,
    RelationshipBlock,
    language,
)
from ringfence.connector.neo4j.read.typed.counts import count_label
from ringfence.connector.neo4j.times import as_parameter

# Anchored at the end with more nodes: one record holds what so many nodes have, and a hub at the
# other end would bring all its relationships at once.
ALL = """
MATCH (n:{anchor}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [n IN part | n.{anchor_key}] AS anchors, [n IN part | [{pattern} | o.{other_key}]] AS others
"""

OF_KEYS = """
UNWIND $keys AS key
MATCH (n:{anchor} {{{anchor_key}: key}})
RETURN collect(n.{anchor_key}) AS anchors, collect([{pattern} | o.{other_key}]) AS others
"""

SINCE = """
MATCH ()-[r:{type}]->() {where}
WITH r WHERE startNode(r):{source} AND endNode(r):{target}
WITH collect(r) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [r IN part | startNode(r).{source_key}] AS sources,
  [r IN part | endNode(r).{target_key}] AS targets
"""

KEYS_PER_QUERY = 2_000


@dataclass(frozen=True, slots=True)
class RelationReader:
    """Reads one relation of a mapping."""

    graph: Graph
    mapping: TypedMapping
    index: int
    rows: int

    @property
    def relation(self) -> RelationMapping:
        """Its type, and the places of its labels."""
        return self.mapping.relations[self.index]

    def read_all(self, from_target: bool) -> Generator[RelationshipBlock, None, None]:
        """Yield all of them, collected at their sources or at their targets."""
        label = self.mapping.nodes[self._ends()[from_target]].label
        spoken = language(self.graph)
        for part in id_ranges(self.graph, label, count_label(self.graph, label), spoken):
            query = f"{spoken} {ALL.format(**self._names(from_target), where=part.where())}"
            for record in self.graph.stream(
                query, RECORDS_IN_FLIGHT, rows=self.rows, **part.parameters
            ):
                yield self._block(record["anchors"], record["others"], from_target)

    def read_of(
        self, keys: Sequence[str], from_target: bool
    ) -> Generator[RelationshipBlock, None, None]:
        """Yield those that start at (or point to) the nodes with these typed keys."""
        query = OF_KEYS.format(**self._names(from_target))
        for start in range(0, len(keys), KEYS_PER_QUERY):
            part = [decode_key(key) for key in keys[start : start + KEYS_PER_QUERY]]
            (record,) = self.graph.read(query, keys=part)
            yield self._block(record["anchors"], record["others"], from_target)

    def read_since(self, since_ns: int) -> Generator[RelationshipBlock, None, None]:
        """Yield those created at `since_ns` or later; many of them in ranges of ids."""
        source, target = (self.mapping.nodes[at] for at in self._ends())
        names = {
            "type": quote(self.relation.type),
            "source": quote(source.label),
            "target": quote(target.label),
            "source_key": quote(source.key),
            "target_key": quote(target.key),
        }
        where = f"WHERE r.{quote(str(self.relation.created_at))} >= $since"
        since = {"since": as_parameter(self.mapping.time_kind, since_ns)}
        for part in relationship_ranges(self.graph, self.relation.type, where, since):
            query = SINCE.format(**names, where=part.where(where, "r"))
            asked = {**since, **part.parameters}
            for record in self.graph.stream(query, RECORDS_IN_FLIGHT, rows=self.rows, **asked):
                yield self._pairs(record["sources"], record["targets"])

    def _ends(self) -> tuple[int, int]:
        return self.relation.source, self.relation.target

    def _names(self, from_target: bool) -> dict[str, str]:
        ends = self._ends()[::-1] if from_target else self._ends()
        anchor, other = (self.mapping.nodes[at] for at in ends)
        left, right = ("<-", "-") if from_target else ("-", "->")
        type_, label = quote(self.relation.type), quote(other.label)
        return {
            "anchor": quote(anchor.label),
            "anchor_key": quote(anchor.key),
            "other_key": quote(other.key),
            "pattern": f"(n){left}[:{type_}]{right}(o:{label})",
        }

    def _block(
        self, anchors: list[Any], others: list[list[Any]], from_target: bool
    ) -> RelationshipBlock:
        repeated = [
            anchor for anchor, found in zip(anchors, others, strict=True) for _ in range(len(found))
        ]
        flat = list(chain.from_iterable(others))
        return self._pairs(flat, repeated) if from_target else self._pairs(repeated, flat)

    def _pairs(self, sources: list[Any], targets: list[Any]) -> RelationshipBlock:
        source, target = self._ends()
        return RelationshipBlock(
            self.index,
            context_keys(source, typed_keys(sources)),
            context_keys(target, typed_keys(targets)),
        )
