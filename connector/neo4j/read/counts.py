"""Counts of the graph that a reader compares its mirror with, mostly from the count store."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.mapping import GraphMapping, RelationMapping
from ringfence.connector.mirror import CLASSIFIED
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.times import as_parameter

# One round trip; every part is answered by the count store, one db hit each. A label at both ends
# would cost a scan. `from` + `to` - `all` is the number with the right label at both ends, where
# none has it at neither; relationships at neither end count as -1 here and in WINDOW.
NODE_COUNT = "MATCH (n:{label}) WITH count(n) AS n RETURN {index} AS at, 'nodes' AS what, n"
RELATION_COUNTS = (
    "MATCH (:{source})-[r:{type}]->() WITH count(r) AS n RETURN {index} AS at, 'from' AS what, n",
    "MATCH ()-[r:{type}]->(:{target}) WITH count(r) AS n RETURN {index} AS at, 'to' AS what, n",
    "MATCH ()-[r:{type}]->() WITH count(r) AS n RETURN {index} AS at, 'all' AS what, n",
)

WINDOW = """
MATCH ()-[r:{type}]->() WHERE r.{created} >= $since
WITH r.{created} < $until AS early,
  sum(CASE WHEN startNode(r):{source} THEN 1 ELSE 0 END
    + CASE WHEN endNode(r):{target} THEN 1 ELSE 0 END - 1) AS n
RETURN early, n
"""

OF_NODES = """
MATCH (n:{label})-[r:{type}]-() WHERE elementId(n) IN $ids
WITH DISTINCT r WHERE startNode(r):{source} AND endNode(r):{target}
RETURN count(r) AS n
"""

SCANNED = "MATCH (:{source})-[r:{type}]->(:{target}) RETURN count(r) AS n"


@dataclass(frozen=True, slots=True)
class RelationCount:
    """Relationships of a type: from the relation's source label, to its target label, in all."""

    from_source: int
    to_target: int
    all: int

    @property
    def both(self) -> int:
        """How many have both labels, less those that have neither."""
        return self.from_source + self.to_target - self.all

    @property
    def is_exact(self) -> bool:
        """Whether none has neither label, for sure."""
        ends = self.from_source, self.to_target
        return self.all in ends or 0 in ends


@dataclass(frozen=True, slots=True)
class Counts:
    """What the count store says of each label and each relation, by their places."""

    nodes: tuple[int, ...]
    relations: tuple[RelationCount, ...]

    @property
    def classified(self) -> int:
        """Nodes of the classified label."""
        return self.nodes[CLASSIFIED]

    @property
    def outgoing(self) -> int:
        """Relationships of all relations from their source labels."""
        return sum(relation.from_source for relation in self.relations)


@dataclass(frozen=True, slots=True)
class Window:
    """Relationships of one type created since some time: before another time, and all of them."""

    early: int
    all: int


def count_graph(graph: Graph, mapping: GraphMapping) -> Counts:
    """Return what the count store says of the mapped labels and types."""
    parts = [
        NODE_COUNT.format(label=quote(node.label), index=index)
        for index, node in enumerate(mapping.nodes)
    ]
    for index, relation in enumerate(mapping.relations):
        parts += _relation_parts(mapping, relation, index)
    rows = _read_counts(graph, parts)
    return Counts(
        tuple(rows["nodes", index] for index in range(len(mapping.nodes))),
        tuple(_relation_count(rows, index) for index in range(len(mapping.relations))),
    )


def _relation_parts(mapping: GraphMapping, relation: RelationMapping, index: int) -> list[str]:
    names = _names(mapping, relation)
    return [part.format(**names, index=index) for part in RELATION_COUNTS]


def _read_counts(graph: Graph, parts: list[str]) -> dict[tuple[str, int], int]:
    rows = graph.read("\nUNION ALL\n".join(parts))
    return {(row["what"], row["at"]): int(row["n"]) for row in rows}


def _relation_count(rows: dict[tuple[str, int], int], index: int) -> RelationCount:
    return RelationCount(rows["from", index], rows["to", index], rows["all", index])


def count_window(
    graph: Graph, mapping: GraphMapping, relation: RelationMapping, since_ns: int, until_ns: int
) -> Window:
    """Return how many of a relation with creation times were created at `since_ns` or later."""
    query = WINDOW.format(**_names(mapping, relation), created=quote(str(relation.created_at)))
    since, until = (as_parameter(mapping.time_kind, ns) for ns in (since_ns, until_ns))
    rows = {
        bool(row["early"]): int(row["n"]) for row in graph.read(query, since=since, until=until)
    }
    return Window(rows.get(True, 0), sum(rows.values()))


def count_at_nodes(
    graph: Graph, mapping: GraphMapping, relation: RelationMapping, element_ids: list[str]
) -> int:
    """Return how many of a relation touch these nodes of the classified label."""
    if not element_ids or CLASSIFIED not in (relation.source, relation.target):
        return 0
    label = quote(mapping.classified.label)
    query = OF_NODES.format(**_names(mapping, relation), label=label)
    return int(graph.read(query, ids=element_ids)[0]["n"])


def scan_relation(graph: Graph, mapping: GraphMapping, relation: RelationMapping) -> int:
    """Return how many of a type join its two labels: exact, at the cost of a scan."""
    return int(graph.read(SCANNED.format(**_names(mapping, relation)))[0]["n"])


def count_relation(graph: Graph, mapping: GraphMapping, relation: RelationMapping) -> int:
    """Return how many relationships a relation has, by the count store where that is exact."""
    count = _relation_count(_read_counts(graph, _relation_parts(mapping, relation, 0)), 0)
    return max(count.both, 0) if count.is_exact else scan_relation(graph, mapping, relation)


def _names(mapping: GraphMapping, relation: RelationMapping) -> dict[str, str]:
    return {
        "source": quote(mapping.nodes[relation.source].label),
        "type": quote(relation.type),
        "target": quote(mapping.nodes[relation.target].label),
    }
