"""What is new in the graph since a watermark, read in column blocks."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError
from ringfence.connector.keys import Key
from ringfence.connector.mapping import GraphMapping, RelationshipMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import (
    FLOAT_BYTES,
    NodeBlock,
    node_block,
    typed_keys,
)
from ringfence.connector.neo4j.read.id_ranges import id_ranges, relationship_ranges
from ringfence.connector.neo4j.read.vectors import (
    CHECKED,
    LISTED,
    MAX_FLOAT32,
    MAX_VECTOR_NUMBERS,
    PACKED,
    STORED,
    TRUSTED,
    unpacked,
)
from ringfence.connector.neo4j.times import as_parameter, checked_ns_expression

RECORDS_IN_FLIGHT = 2  # each holds a whole block
MAX_FEATURES_PER_BLOCK = 1 << 21  # numbers: the server holds them as objects

# The client pays per record, 25 to 40 microseconds, and per value inside one only a small part of
# that. So the server collects references, cuts the list, and returns few wide records of columns.
NODES = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS block
RETURN [n IN block | elementId(n)] AS ids, [n IN block | {key}] AS keys,
  {features} AS features, [n IN block | {class_}] AS classes,
  [t IN [n IN block | {created}] | {ns}] AS ns
"""

RELATIONSHIPS_FROM = """
UNWIND $keys AS key
MATCH (a:{label} {{{key}: key}})
RETURN collect(a.{key}) AS sources,
  collect([(a)-[:{type}]->(b:{label}) | b.{key}]) AS targets
"""

ALL_KEYS = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS block
RETURN [n IN block | elementId(n)] AS ids, [n IN block | n.{key}] AS keys
"""

# The ends' labels are asked afterwards: where many relationships share a creation time (an import)
# the planner takes `>= $since` for most of them, and would scan the label and expand every node.
NEW_RELATIONSHIPS = """
MATCH ()-[r:{type}]->() {where}
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


TypedKeys = Sequence[str | None] | NDArray[np.int64]
"""Keys as typed text (None: can't be used), or as they are where all of them are integers."""


@dataclass(frozen=True, slots=True)
class RelationshipBlock:
    """Relationships of one type by the keys of their ends; source i has counts[i] targets.

    Without `counts` every source has one. A target of None can't be used.
    """

    type_index: int
    sources: TypedKeys
    targets: TypedKeys
    counts: NDArray[np.int64] | None = None

    def ends(self, source: int, target: int) -> tuple[str, str] | None:
        """Return two places' keys as typed text; None where one can't be used."""
        keys = _text(self.sources[source]), _text(self.targets[target])
        return None if keys[0] is None or keys[1] is None else (keys[0], keys[1])


def _text(key: object) -> str | None:
    return key if key is None or isinstance(key, str) else f"i:{key}"


def feature_width(graph: Graph, mapping: GraphMapping, sample: int | None = None) -> int:
    """Return how many numbers a node's features have: the commonest length where it is a list.

    Byte arrays hold float32 numbers, four bytes each, the lowest byte first. All nodes are looked
    at, which takes the server 0.4 s for 100,000; with `sample` only so many, if one has a list.
    """
    if not mapping.features_are_list:
        return len(mapping.features)
    features = f"n.{quote(mapping.features[0])}"
    some = f"WITH n LIMIT {int(sample)} WITH n " if sample else ""
    lists = (
        f"{language(graph)} MATCH (n:{quote(mapping.label)}) {some}"
        f"WHERE valueType({features}) STARTS WITH 'LIST' "
        f"OR valueType({features}) STARTS WITH 'VECTOR'"
    )
    rows = graph.read(
        f"{lists} RETURN size({features}) AS width, count(*) AS n ORDER BY n DESC, width LIMIT 1"
    )
    if not rows and sample:
        return feature_width(graph, mapping)
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
    graph: Graph, mapping: GraphMapping, width: int, since_ns: int, rows: int, expected: int = 0
) -> Generator[NodeBlock, None, None]:
    """Yield the nodes created at `since_ns` or later; about `expected` of them may be new."""
    where = f"WHERE n.{quote(mapping.created_at)} >= $since"
    since = as_parameter(mapping.time_kind, since_ns)
    for part in id_ranges(graph, mapping.label, expected, language(graph)):
        asked = {"since": since, **part.parameters}
        yield from node_blocks(graph, mapping, width, rows, part.where(where), **asked)


def read_nodes_by_id(
    graph: Graph, mapping: GraphMapping, width: int, element_ids: Sequence[str], rows: int
) -> Generator[NodeBlock, None, None]:
    """Yield nodes by the ids that they had when they went to quarantine, if they still exist."""
    where = "WHERE elementId(n) IN $ids"
    for start in range(0, len(element_ids), rows):
        part = list(element_ids[start : start + rows])
        yield from node_blocks(graph, mapping, width, rows, where, ids=part)


def read_keys(
    graph: Graph, mapping: GraphMapping, rows: int, expected: int
) -> Generator[tuple[list[str], TypedKeys], None, None]:
    """Yield the ids and the keys of all nodes; `expected` says about how many there are."""
    names = {"label": quote(mapping.label), "key": quote(mapping.key)}
    for part in id_ranges(graph, mapping.label, expected, language(graph)):
        query = f"{language(graph)} {ALL_KEYS.format(**names, where=part.where())}"
        for record in graph.stream(query, RECORDS_IN_FLIGHT, rows=rows, **part.parameters):
            yield record["ids"], _keys(record["keys"])


def node_blocks(
    graph: Graph, mapping: GraphMapping, width: int, rows: int, where: str, **parameters: object
) -> Generator[NodeBlock, None, None]:
    """Yield the nodes `n` for which `where` holds, `rows` at a time or fewer.

    Where the server refuses to pack, all of them are read again with a check of every number:
    nodes that were yielded before come twice, and a mirror drops them by their keys.
    """
    rows = max(1, min(rows, MAX_FEATURES_PER_BLOCK // max(width, 1)))
    if not graph.has_vectors or not 0 < width <= MAX_VECTOR_NUMBERS:
        yield from _blocks(graph, _node_query(mapping, where, None), width, rows=rows, **parameters)
        return
    parameters |= {"rows": rows, "together": MAX_VECTOR_NUMBERS // width, "width": width}
    try:
        yield from _blocks(graph, _node_query(mapping, where, TRUSTED), width, **parameters)
    except GraphError:
        query = _node_query(mapping, where, CHECKED)
        yield from _blocks(graph, query, width, largest=MAX_FLOAT32, **parameters)


def _blocks(
    graph: Graph, query: str, width: int, /, **parameters: object
) -> Generator[NodeBlock, None, None]:
    for record in graph.stream(f"{language(graph)} {query}", RECORDS_IN_FLIGHT, **parameters):
        ids, keys, features, classes, ns = record.values()
        matrix = unpacked(features, width) if "together" in parameters else features
        yield node_block(width, ids, keys, matrix, classes, ns)


def _node_query(mapping: GraphMapping, where: str, vector: str | None) -> str:
    list_ = f"n.{quote(mapping.features[0])}"
    if not mapping.features_are_list:
        list_ = "[" + ", ".join(f"n.{quote(name)}" for name in mapping.features) + "]"
    kind = STORED if mapping.features_are_list else LISTED
    packed = PACKED.format(list_=list_, kind=kind, vector=vector)
    return NODES.format(
        label=quote(mapping.label),
        where=where,
        key=f"n.{quote(mapping.key)}",
        features=packed if vector else f"[n IN block | {list_}]",
        class_=f"n.{quote(mapping.class_property)}",
        created=f"n.{quote(mapping.created_at)}",
        ns=checked_ns_expression(mapping.time_kind, "t"),
    )


def language(graph: Graph) -> str:
    """Only Cypher 25 knows vectors; servers without it take what they speak."""
    return "CYPHER 25" if graph.has_vectors else ""


def read_relationships(
    graph: Graph,
    mapping: GraphMapping,
    since_ns: int,
    new_keys: Sequence[Key],
    rows: int,
) -> Generator[RelationshipBlock, None, None]:
    """Yield relationships created at `since_ns` or later.

    Many of them come in ranges of ids. A type without creation times is read by the new nodes it
    touches, whichever way it points, some nodes at a time.
    """
    for index, kind in enumerate(mapping.relationships):
        if kind.created_at:
            for query, asked in since_queries(graph, mapping, kind, since_ns):
                for record in graph.stream(query, RECORDS_IN_FLIGHT, rows=rows, **asked):
                    yield relationship_block(index, record["sources"], record["targets"])
        else:
            query = touching_query(mapping, kind)
            yield from _touching(graph, index, query, new_keys, rows)


def _touching(
    graph: Graph, index: int, query: str, keys: Sequence[Key], rows: int
) -> Generator[RelationshipBlock, None, None]:
    """Yield each relationship at the nodes with these keys once, some nodes at a time.

    What touches a node of an earlier question came with it.
    """
    asked: set[Key] = set()
    for start in range(0, len(keys), rows):
        part = list(keys[start : start + rows])
        for record in graph.stream(query, RECORDS_IN_FLIGHT, rows=rows, keys=part):
            sources, targets = record["sources"], record["targets"]
            if asked:
                pairs = zip(sources, targets, strict=True)
                fresh = [(a, b) for a, b in pairs if not (_is_in(a, asked) or _is_in(b[0], asked))]
                sources, targets = [a for a, _ in fresh], [b for _, b in fresh]
            yield relationship_block(index, sources, targets)
        asked.update(part)


def _is_in(key: object, keys: set[Key]) -> bool:
    """Whether a value of the graph is one of the keys: 1.0 and true are no 1, a list is no key."""
    return type(key) in (int, str) and key in keys


def read_relationships_from(
    graph: Graph, mapping: GraphMapping, type_index: int, keys: Sequence[Key], rows: int
) -> Generator[RelationshipBlock, None, None]:
    """Yield all relationships of one type that start at the nodes with these keys."""
    query = RELATIONSHIPS_FROM.format(
        **relationship_names(mapping, mapping.relationships[type_index])
    )
    for start in range(0, len(keys), rows):
        (record,) = graph.read(query, keys=list(keys[start : start + rows]))
        yield relationship_block(type_index, record["sources"], record["targets"])


def relationship_block(
    index: int, sources: list[Any], targets: list[list[Any]]
) -> RelationshipBlock:
    """Return two columns as the server gives them as a block of one type."""
    counts = np.fromiter(map(len, targets), np.int64)
    flat = list(chain.from_iterable(targets))
    return RelationshipBlock(index, _keys(sources), _keys(flat), counts)


def _keys(values: list[Any]) -> TypedKeys:
    integers = set(map(type, values)) == {int}
    return np.array(values, np.int64) if integers else typed_keys(values)


def since_queries(
    graph: Graph, mapping: GraphMapping, kind: RelationshipMapping, since_ns: int
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield queries, with parameters, for what is new of a type with creation times, by ranges."""
    names = relationship_names(mapping, kind)
    where = f"WHERE r.{quote(str(kind.created_at))} >= $since"
    since: dict[str, object] = {"since": as_parameter(mapping.time_kind, since_ns)}
    for part in relationship_ranges(graph, kind.type, where, since):
        query = NEW_RELATIONSHIPS.format(**names, where=part.where(where, "r"))
        yield query, {**since, **part.parameters}


def touching_query(mapping: GraphMapping, kind: RelationshipMapping) -> str:
    """Return the query for the relationships of a type at the nodes with some keys."""
    return RELATIONSHIPS_OF.format(**relationship_names(mapping, kind))


def relationship_names(mapping: GraphMapping, kind: RelationshipMapping) -> dict[str, str]:
    """Return the quoted names that queries about relationships are made with."""
    return {"label": quote(mapping.label), "key": quote(mapping.key), "type": quote(kind.type)}
