"""What is new in the graph since a watermark, read in column blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from ringfence.connector.errors import GraphError
from ringfence.connector.graph import Graph
from ringfence.connector.keys import Key
from ringfence.connector.mapping import GraphMapping, RelationshipMapping
from ringfence.connector.quoting import quote
from ringfence.connector.rows import FLOAT_BYTES, NodeBlock, node_block, typed_keys
from ringfence.connector.times import as_parameter, ns_expression

RECORDS = 2  # records on the way at a time: each holds a whole block

# The client pays per record, 25 to 40 microseconds, and per value inside one only a small part of
# that. So the server collects references, cuts the list, and returns few wide records of columns.
NODES = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [n IN part | elementId(n)] AS ids, [n IN part | {key}] AS keys,
  [n IN part | {features}] AS features, [n IN part | {class_}] AS classes,
  [n IN part | {ns}] AS ns
"""

ALL_RELATIONSHIPS = """
MATCH (a:{label})
WITH collect(a) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [a IN part | a.{key}] AS sources,
  [a IN part | [(a)-[:{type}]->(b:{label}) | b.{key}]] AS targets
"""

# The ends' labels are asked afterwards: where many relationships share a creation time (an import)
# the planner takes `>= $since` for most of them, and would scan the label and expand every node.
NEW_RELATIONSHIPS = """
MATCH ()-[r:{type}]->() WHERE r.{created} >= $since
WITH r WHERE startNode(r):{label} AND endNode(r):{label}
WITH collect(r) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [r IN part | startNode(r).{key}] AS sources, [r IN part | [endNode(r).{key}]] AS targets
"""

RELATIONSHIPS_OF = """
UNWIND $keys AS key
MATCH (:{label} {{{key}: key}})-[r:{type}]-()
WITH DISTINCT r WHERE startNode(r):{label} AND endNode(r):{label}
WITH collect(r) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [r IN part | startNode(r).{key}] AS sources, [r IN part | [endNode(r).{key}]] AS targets
"""


@dataclass(frozen=True, slots=True)
class RelationshipBlock:
    """Relationships of one type as typed keys of their ends; a target of None has another label."""

    type_index: int
    sources: list[str]
    targets: list[str | None]


def feature_width(graph: Graph, mapping: GraphMapping) -> int:
    """Return how many numbers a node's features have: the commonest length where it is a list.

    Byte arrays hold float32 numbers, four bytes each, the lowest byte first.
    """
    if not mapping.features_are_list:
        return len(mapping.features)
    features = f"n.{quote(mapping.features[0])}"
    lists = f"MATCH (n:{quote(mapping.label)}) WHERE valueType({features}) STARTS WITH 'LIST' "
    rows = graph.read(
        f"{lists} RETURN size({features}) AS width, count(*) AS n ORDER BY n DESC, width LIMIT 1"
    )
    if not rows:
        raise GraphError(
            found=f"no :{mapping.label} node has a list in {mapping.features[0]}",
            needed="[graph] features: a list property, or a list of numeric properties",
            next_step="ringfence doctor",
        )
    (one,) = graph.read(f"{lists} RETURN {features} AS features LIMIT 1")
    width = int(rows[0]["width"])
    return width // FLOAT_BYTES if isinstance(one["features"], bytes) else width


def read_nodes(
    graph: Graph, mapping: GraphMapping, width: int, since_ns: int | None, rows: int
) -> Iterator[NodeBlock]:
    """Yield the nodes created at `since_ns` or later, or all of them where it is None."""
    where = f"WHERE n.{quote(mapping.created_at)} >= $since" if since_ns is not None else ""
    since = None if since_ns is None else as_parameter(mapping.time_kind, since_ns)
    query = _node_query(mapping, where)
    for record in graph.stream(query, RECORDS, since=since, rows=rows):
        yield node_block(width, *record.values())


def read_again(
    graph: Graph, mapping: GraphMapping, width: int, element_ids: Sequence[str], rows: int
) -> Iterator[NodeBlock]:
    """Yield nodes by the ids that they had when they went to quarantine, if they still exist."""
    query = _node_query(mapping, "WHERE elementId(n) IN $ids")
    for record in graph.stream(query, RECORDS, ids=list(element_ids), rows=rows):
        yield node_block(width, *record.values())


def _node_query(mapping: GraphMapping, where: str) -> str:
    created = f"n.{quote(mapping.created_at)}"
    if mapping.features_are_list:
        features = f"n.{quote(mapping.features[0])}"
    else:
        features = "[" + ", ".join(f"n.{quote(name)}" for name in mapping.features) + "]"
    return NODES.format(
        label=quote(mapping.label),
        where=where,
        key=f"n.{quote(mapping.key)}",
        features=features,
        class_=f"n.{quote(mapping.class_property)}",
        ns=ns_expression(mapping.time_kind, created),
    )


def read_relationships(
    graph: Graph,
    mapping: GraphMapping,
    since_ns: int | None,
    new_keys: Sequence[Key],
    rows: int,
) -> Iterator[RelationshipBlock]:
    """Yield relationships created at `since_ns` or later (None: all of them).

    A type without creation times is read by the new nodes it touches, whichever way it points.
    """
    for index, kind in enumerate(mapping.relationships):
        query, parameters = _relationship_query(mapping, kind, since_ns, new_keys)
        for record in graph.stream(query, RECORDS, rows=rows, **parameters):
            targets = [typed_keys(part) for part in record["targets"]]
            sources = [
                source
                for source, part in zip(typed_keys(record["sources"]), targets, strict=True)
                for _ in part
            ]
            yield _usable(index, sources, list(chain.from_iterable(targets)))


def _usable(index: int, sources: list[str | None], targets: list[str | None]) -> RelationshipBlock:
    """A node without a usable key is in quarantine; its relationships wait with it."""
    ends = zip(sources, targets, strict=True)
    kept = [(source, target) for source, target in ends if source is not None]
    return RelationshipBlock(index, [a for a, _ in kept], [b for _, b in kept])


def _relationship_query(
    mapping: GraphMapping,
    kind: RelationshipMapping,
    since_ns: int | None,
    new_keys: Sequence[Key],
) -> tuple[str, dict[str, object]]:
    names = {
        "label": quote(mapping.label), "key": quote(mapping.key), "type": quote(kind.type)
    }  # fmt: skip
    if since_ns is None:
        return ALL_RELATIONSHIPS.format(**names), {}
    if kind.created_at:
        created = quote(kind.created_at)
        since = as_parameter(mapping.time_kind, since_ns)
        return NEW_RELATIONSHIPS.format(**names, created=created), {"since": since}
    return RELATIONSHIPS_OF.format(**names), {"keys": list(new_keys)}
