"""What is new in the graph since a watermark, read in column blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from neo4j import Record

from ringfence.connector.errors import GraphError
from ringfence.connector.graph import Graph
from ringfence.connector.keys import Key, encode_key
from ringfence.connector.mapping import GraphMapping, RelationshipMapping
from ringfence.connector.quoting import quote
from ringfence.connector.rows import NodeBlock, node_block
from ringfence.connector.times import as_parameter, ns_expression


@dataclass(frozen=True, slots=True)
class RelationshipBlock:
    """Relationships of one type as typed keys of their ends; a target of None has another label."""

    type_index: int
    sources: list[str]
    targets: list[str | None]


def feature_width(graph: Graph, mapping: GraphMapping) -> int:
    """Return how many numbers a node's features have: the commonest length where it is a list."""
    if not mapping.features_are_list:
        return len(mapping.features)
    features = f"n.{quote(mapping.features[0])}"
    rows = graph.read(
        f"MATCH (n:{quote(mapping.label)}) WHERE valueType({features}) STARTS WITH 'LIST' "
        f"RETURN size({features}) AS width, count(*) AS n ORDER BY n DESC, width LIMIT 1"
    )
    if not rows:
        raise GraphError(
            found=f"no :{mapping.label} node has a list in {mapping.features[0]}",
            needed="[graph] features: a list property, or a list of numeric properties",
            next_step="ringfence doctor",
        )
    return int(rows[0]["width"])


def read_nodes(
    graph: Graph, mapping: GraphMapping, width: int, since_ns: int | None, rows: int
) -> Iterator[NodeBlock]:
    """Yield the nodes created after `since_ns`, or all of them where it is None."""
    created = f"n.{quote(mapping.created_at)}"
    if mapping.features_are_list:
        features = f"n.{quote(mapping.features[0])}"
    else:
        features = "[" + ", ".join(f"n.{quote(name)}" for name in mapping.features) + "]"
    query = (
        f"MATCH (n:{quote(mapping.label)}) "
        + (f"WHERE {created} > $since " if since_ns is not None else "")
        + f"RETURN elementId(n) AS id, n.{quote(mapping.key)} AS key, {features} AS features, "
        f"n.{quote(mapping.class_property)} AS class, "
        f"{ns_expression(mapping.time_kind, created)} AS ns"
    )
    since = None if since_ns is None else as_parameter(mapping.time_kind, since_ns)
    for block in _blocks(graph.stream(query, rows, since=since), rows):
        yield node_block(block, width)


def read_relationships(
    graph: Graph,
    mapping: GraphMapping,
    since_ns: int | None,
    new_keys: Sequence[Key],
    rows: int,
) -> Iterator[RelationshipBlock]:
    """Yield relationships created after `since_ns` (None: all of them).

    A type without creation times is read by the new nodes it touches, whichever way it points.
    """
    for index, kind in enumerate(mapping.relationships):
        query, parameters = _relationship_query(mapping, kind, since_ns, new_keys)
        for block in _blocks(graph.stream(query, rows, **parameters), rows):
            ends = [(_end(row["source"]), _end(row["target"])) for row in block]
            usable = [(source, target) for source, target in ends if source is not None]
            yield RelationshipBlock(index, [a for a, _ in usable], [b for _, b in usable])


def _end(value: object) -> str | None:
    """A node without a usable key is in quarantine; its relationships wait with it."""
    try:
        return encode_key(value)
    except GraphError:
        return None


def _relationship_query(
    mapping: GraphMapping,
    kind: RelationshipMapping,
    since_ns: int | None,
    new_keys: Sequence[Key],
) -> tuple[str, dict[str, object]]:
    label, key, type_ = quote(mapping.label), quote(mapping.key), quote(kind.type)
    ends = f"RETURN a.{key} AS source, CASE WHEN b:{label} THEN b.{key} END AS target"
    if since_ns is None:
        return f"MATCH (a:{label})-[r:{type_}]->(b) {ends}", {}
    if kind.created_at:
        return (
            f"MATCH (a)-[r:{type_}]->(b) WHERE r.{quote(kind.created_at)} > $since "
            f"AND a:{label} {ends}"
        ), {"since": as_parameter(mapping.time_kind, since_ns)}
    return (
        f"UNWIND $keys AS key MATCH (n:{label} {{{key}: key}})-[r:{type_}]-() "
        f"WITH DISTINCT r, startNode(r) AS a, endNode(r) AS b WHERE a:{label} {ends}"
    ), {"keys": list(new_keys)}


def _blocks(records: Iterator[Record], rows: int) -> Iterator[list[Record]]:
    while block := list(islice(records, rows)):
        yield block
