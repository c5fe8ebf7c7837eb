"""The classes of nodes as the graph has them now: of given keys, or set since a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import UnusableError, class_name
from ringfence.connector.neo4j.times import as_parameter, checked_ns_expression
from ringfence.connector.records import KnownClass, NodeState

MAX_CLASSES_COUNTED = 10_000

CLASSES_OF_KEYS = """
UNWIND $keys AS key MATCH (n:{label} {{{key}: key}}) WHERE n.{class_} IS NOT NULL
RETURN n.{key} AS key, n.{class_} AS class, null AS ns
"""

CLASSES_SINCE = """
MATCH (n:{label}) WHERE n.{labelled_at} >= $since AND n.{class_} IS NOT NULL
WITH n, n.{labelled_at} AS t
RETURN n.{key} AS key, n.{class_} AS class, {ns} AS ns
"""

STATES_OF_KEYS = """
UNWIND $keys AS key MATCH (n:{label} {{{key}: key}})
WITH n, {created} AS t
RETURN collect([n.{key}, n.{class_}, {ns}]) AS states
"""


def node_states(graph: Graph, mapping: GraphMapping, keys: Sequence[str]) -> dict[str, NodeState]:
    """Return class and creation time of those of `keys` that have a node now.

    A class that can't be one counts as none, and so does such a time.
    """
    query = STATES_OF_KEYS.format(
        label=quote(mapping.label),
        key=quote(mapping.key),
        class_=quote(mapping.class_property),
        created=f"n.{quote(mapping.created_at)}" if mapping.created_at else "null",
        ns=checked_ns_expression(mapping.time_kind, "t"),
    )
    (record,) = graph.read(query, keys=[decode_key(key) for key in keys])
    return {encode_key(key): _state(class_, ns) for key, class_, ns in record["states"]}


def _state(class_: object, ns: object) -> NodeState:
    name = None
    with suppress(UnusableError):
        name = class_name(class_)
    return NodeState(name, ns if isinstance(ns, int) else None)


def count_classes(graph: Graph, mapping: GraphMapping) -> dict[str, int]:
    """Return how many nodes have each class, the commonest first; at most `MAX_CLASSES_COUNTED`."""
    class_ = f"n.{quote(mapping.class_property)}"
    rows = graph.read(
        f"MATCH (n:{quote(mapping.label)}) WHERE {class_} IS NOT NULL "
        f"RETURN {class_} AS class, count(*) AS n ORDER BY n DESC, class "
        f"LIMIT {MAX_CLASSES_COUNTED}"
    )
    return {str(row["class"]): int(row["n"]) for row in rows}


def known_classes(
    graph: Graph, mapping: GraphMapping, keys: Sequence[str]
) -> dict[str, KnownClass]:
    """Return the classes of those of `keys` that have one now."""
    query = CLASSES_OF_KEYS.format(
        label=quote(mapping.label), key=quote(mapping.key), class_=quote(mapping.class_property)
    )
    return _by_key(graph.read(query, keys=[decode_key(key) for key in keys]))


def classes_since(
    graph: Graph, mapping: GraphMapping, labelled_at: str, since_ns: int, rows: int
) -> Iterator[dict[str, KnownClass]]:
    """Yield the classes whose `labelled_at` is not before `since_ns`, in blocks."""
    query = CLASSES_SINCE.format(
        label=quote(mapping.label),
        key=quote(mapping.key),
        class_=quote(mapping.class_property),
        labelled_at=quote(labelled_at),
        ns=checked_ns_expression(mapping.time_kind, "t"),
    )
    block: list[Any] = []
    for row in graph.stream(query, rows, since=as_parameter(mapping.time_kind, since_ns)):
        block.append(row)
        if len(block) == rows:
            yield _by_key(block)
            block = []
    if block:
        yield _by_key(block)


def _by_key(rows: Sequence[Any]) -> dict[str, KnownClass]:
    classes = {}
    for row in rows:
        with suppress(UnusableError):  # a class that isn't text or a number stays unknown
            name = str(class_name(row["class"]))
            ns = row["ns"] if isinstance(row["ns"], int) else None  # text: out of range
            classes[encode_key(row["key"])] = KnownClass(name, ns)
    return classes
