"""What the graph counts of labels and relations; most of it is answered by the count store."""

from __future__ import annotations

from ringfence.connector.mapping import RelationMapping, TypedMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.times import as_parameter

LABEL = "MATCH (n:{label}) RETURN count(n) AS n"
AT_SOURCE = "MATCH (:{source})-[r:{type}]->() RETURN count(r) AS n"
AT_TARGET = "MATCH ()-[r:{type}]->(:{target}) RETURN count(r) AS n"
OF_TYPE = "MATCH ()-[r:{type}]->() RETURN count(r) AS n"
SCANNED = "MATCH (:{source})-[r:{type}]->(:{target}) RETURN count(r) AS n"
WINDOW = """
MATCH ()-[r:{type}]->() WHERE r.{created} >= $since
WITH r WHERE startNode(r):{source} AND endNode(r):{target}
RETURN count(r) AS n
"""


def count_label(graph: Graph, label: str) -> int:
    """Return how many nodes carry a label: one question to the count store."""
    return _count(graph, LABEL.format(label=quote(label)))


def count_relation(graph: Graph, mapping: TypedMapping, relation: RelationMapping) -> int:
    """Return how many relationships of a type join its two labels.

    Three numbers of the count store decide it where the type joins these labels alone; else the
    type is scanned.
    """
    names = _names(mapping, relation)
    at_source, at_target, all_ = (
        _count(graph, query.format(**names)) for query in (AT_SOURCE, AT_TARGET, OF_TYPE)
    )
    if at_source == at_target == all_:
        return all_
    if not at_source or not at_target:
        return 0
    return _count(graph, SCANNED.format(**names))


def count_since(
    graph: Graph, mapping: TypedMapping, relation: RelationMapping, since_ns: int
) -> int:
    """Return how many of a relation with creation times were created at `since_ns` or later."""
    query = WINDOW.format(**_names(mapping, relation), created=quote(str(relation.created_at)))
    since = as_parameter(mapping.time_kind, since_ns)
    return int(graph.read(query, since=since)[0]["n"])


def _count(graph: Graph, query: str) -> int:
    return int(graph.read(query)[0]["n"])


def _names(mapping: TypedMapping, relation: RelationMapping) -> dict[str, str]:
    return {
        "source": quote(mapping.nodes[relation.source].label),
        "type": quote(relation.type),
        "target": quote(mapping.nodes[relation.target].label),
    }
