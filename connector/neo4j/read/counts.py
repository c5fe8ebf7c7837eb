"""Numbers about the graph that a reader compares its mirror with; most are from the count store."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.mapping import GraphMapping, RelationshipMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.times import as_parameter

# One round trip; every part is answered by the count store, one db hit each. A label at both ends
# would cost a scan. `from` + `to` - `all` is the number with the label at both ends, where none has
# it at neither; relationships at neither end count as -1 here and in WINDOW.
NODE_COUNT = "MATCH (n:{label}) WITH count(n) AS n RETURN 0 AS type, 0 AS sign, n"
TYPE_COUNTS = (
    "MATCH (:{label})-[r:{type}]->() WITH count(r) AS n RETURN {index} AS type, 2 AS sign, n",
    "MATCH ()-[r:{type}]->(:{label}) WITH count(r) AS n RETURN {index} AS type, 1 AS sign, n",
    "MATCH ()-[r:{type}]->() WITH count(r) AS n RETURN {index} AS type, -1 AS sign, n",
)

WINDOW = """
MATCH ()-[r:{type}]->() WHERE r.{created} >= $since
WITH r.{created} < $until AS early,
  sum(CASE WHEN startNode(r):{label} THEN 1 ELSE 0 END
    + CASE WHEN endNode(r):{label} THEN 1 ELSE 0 END - 1) AS n
RETURN early, n
"""

OF_QUARANTINED = """
MATCH (n:{label})-[r:{type}]-() WHERE elementId(n) IN $ids
WITH DISTINCT r WHERE startNode(r):{label} AND endNode(r):{label}
RETURN count(r) AS n
"""

SCANNED = "MATCH (:{label})-[r:{type}]->(:{label}) RETURN count(r) AS n"


@dataclass(frozen=True, slots=True)
class Counts:
    """Nodes with the label; relationships with it at both ends and at the start, by type index."""

    nodes: int
    both: tuple[int, ...]
    outgoing: int


@dataclass(frozen=True, slots=True)
class Window:
    """Relationships of one type created since some time: before another time, and all of them."""

    early: int
    all: int


def count_graph(graph: Graph, mapping: GraphMapping) -> Counts:
    """Return what the count store says of the mapped label and types."""
    parts = [NODE_COUNT.format(label=quote(mapping.label))]
    for index, kind in enumerate(mapping.relationships, start=1):
        names = _names(mapping, kind)
        parts += [part.format(**names, index=index) for part in TYPE_COUNTS]
    rows = graph.read("\nUNION ALL\n".join(parts))
    both = [0] * (len(mapping.relationships) + 1)
    for row in rows:
        both[row["type"]] += row["n"] * (-1 if row["sign"] < 0 else 1)
    outgoing = sum(int(row["n"]) for row in rows if row["sign"] == 2)
    nodes = next(int(row["n"]) for row in rows if row["sign"] == 0)
    return Counts(nodes, tuple(both[1:]), outgoing)


def count_window(
    graph: Graph, mapping: GraphMapping, kind: RelationshipMapping, since_ns: int, until_ns: int
) -> Window:
    """Return how many of a type with creation times were created at `since_ns` or later."""
    query = WINDOW.format(**_names(mapping, kind), created=quote(str(kind.created_at)))
    since, until = (as_parameter(mapping.time_kind, ns) for ns in (since_ns, until_ns))
    rows = {
        bool(row["early"]): int(row["n"]) for row in graph.read(query, since=since, until=until)
    }
    return Window(rows.get(True, 0), sum(rows.values()))


def count_of_quarantined(
    graph: Graph, mapping: GraphMapping, kind: RelationshipMapping, element_ids: list[str]
) -> int:
    """Return how many of a type touch these nodes."""
    if not element_ids:
        return 0
    query = OF_QUARANTINED.format(**_names(mapping, kind))
    return int(graph.read(query, ids=element_ids)[0]["n"])


def scan_type(graph: Graph, mapping: GraphMapping, kind: RelationshipMapping) -> int:
    """Return how many of a type have the label at both ends: exact, at the cost of a scan."""
    return int(graph.read(SCANNED.format(**_names(mapping, kind)))[0]["n"])


def _names(mapping: GraphMapping, kind: RelationshipMapping) -> dict[str, str]:
    return {"label": quote(mapping.label), "type": quote(kind.type)}
