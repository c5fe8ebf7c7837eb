"""The classes of nodes as the graph has them now: of given keys, or set since a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ringfence.connector.incarnation import PresentNode
from ringfence.connector.keys import Key, decode_key, encode_key, typed_key_of
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import UnusableError, class_name
from ringfence.connector.neo4j.times import as_parameter, checked_ns_expression
from ringfence.connector.records import KnownClass, NodeState

MAX_CLASSES_COUNTED = 10_000
EVALUATED_KEYS = "[(n)-[e:EVALUATED]->(:RingfenceRun {project: $project}) | e.key]"

CLASSES_OF_KEYS = """
UNWIND $keys AS key MATCH (n:{label} {{{key}: key}}) WHERE n.{class_} IS NOT NULL
WITH n, null AS ns, {created} AS t
RETURN n.{key} AS key, n.{class_} AS class, ns, {evaluated} AS evaluated, {created_ns} AS created
"""

CLASSES_SINCE = """
MATCH (n:{label}) WHERE n.{labelled_at} >= $since AND n.{class_} IS NOT NULL
WITH n, n.{labelled_at} AS t
WITH n, {ns} AS ns, {created} AS t
RETURN n.{key} AS key, n.{class_} AS class, ns, {evaluated} AS evaluated, {created_ns} AS created
"""

STATES_OF_KEYS = """
UNWIND $keys AS key MATCH (n:{label} {{{key}: key}})
WITH n, {created} AS t
RETURN collect([n.{key}, n.{class_}, {ns}]) AS states
"""


@dataclass(frozen=True, slots=True)
class NodeClass:
    """The class of a node, and which node it is."""

    known: KnownClass
    node: PresentNode


def node_states(graph: Graph, mapping: GraphMapping, keys: Sequence[str]) -> dict[str, NodeState]:
    """Return class and creation time of the nodes that have those of `keys` now.

    `keys` are the record's. A class that can't be one counts as none, and so does such a time.
    """
    node = mapping.classified
    query = STATES_OF_KEYS.format(
        label=quote(node.label),
        key=quote(node.key),
        class_=quote(mapping.class_property),
        created=f"n.{quote(node.created_at)}" if node.created_at else "null",
        ns=checked_ns_expression(mapping.time_kind, "t"),
    )
    (record,) = graph.read(query, keys=_values(keys))
    states = {encode_key(key): _state(class_, ns) for key, class_, ns in record["states"]}
    return {key: states[typed] for key in keys if (typed := typed_key_of(key)) in states}


def _values(keys: Sequence[str]) -> list[Key]:
    """The values of the key property, each once: nodes of one key share it."""
    return [decode_key(key) for key in dict.fromkeys(map(typed_key_of, keys))]


def _state(class_: object, ns: object) -> NodeState:
    name = None
    with suppress(UnusableError):
        name = class_name(class_)
    return NodeState(name, ns if isinstance(ns, int) else None)


def count_classes(graph: Graph, mapping: GraphMapping) -> dict[str, int]:
    """Return how many nodes have each class, the commonest first; at most `MAX_CLASSES_COUNTED`."""
    class_ = f"n.{quote(mapping.class_property)}"
    rows = graph.read(
        f"MATCH (n:{quote(mapping.classified.label)}) WHERE {class_} IS NOT NULL "
        f"RETURN {class_} AS class, count(*) AS n ORDER BY n DESC, class "
        f"LIMIT {MAX_CLASSES_COUNTED}"
    )
    return {str(row["class"]): int(row["n"]) for row in rows}


def known_classes(
    graph: Graph, mapping: GraphMapping, project: str, keys: Sequence[str]
) -> dict[str, NodeClass]:
    """Return the classes of the nodes that have those of the record's `keys` now, by typed key."""
    query = CLASSES_OF_KEYS.format(**_names(mapping))
    return _by_key(graph.read(query, keys=_values(keys), project=project))


def classes_since(
    graph: Graph, mapping: GraphMapping, project: str, labelled_at: str, since_ns: int, rows: int
) -> Iterator[dict[str, NodeClass]]:
    """Yield the classes whose `labelled_at` is not before `since_ns`, in blocks, by typed key."""
    query = CLASSES_SINCE.format(
        **_names(mapping),
        labelled_at=quote(labelled_at),
        ns=checked_ns_expression(mapping.time_kind, "t"),
    )
    since, block = as_parameter(mapping.time_kind, since_ns), []
    for row in graph.stream(query, rows, since=since, project=project):
        block.append(row)
        if len(block) == rows:
            yield _by_key(block)
            block = []
    if block:
        yield _by_key(block)


def _names(mapping: GraphMapping) -> dict[str, str]:
    """What both queries of classes name."""
    node = mapping.classified
    return {
        "label": quote(node.label),
        "key": quote(node.key),
        "class_": quote(mapping.class_property),
        "created": f"n.{quote(node.created_at)}" if node.created_at else "null",
        "created_ns": checked_ns_expression(mapping.time_kind, "t"),
        "evaluated": EVALUATED_KEYS,
    }


def _by_key(rows: Sequence[Any]) -> dict[str, NodeClass]:
    classes = {}
    for row in rows:
        with suppress(UnusableError):  # a class that isn't text or a number stays unknown
            name = str(class_name(row["class"]))
            ns = row["ns"] if isinstance(row["ns"], int) else None  # text: out of range
            created = row["created"] if isinstance(row["created"], int) else None
            node = PresentNode(created, tuple(row["evaluated"]))
            classes[encode_key(row["key"])] = NodeClass(KnownClass(name, ns), node)
    return classes
