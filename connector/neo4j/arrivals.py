"""When nodes and edges arrived, by their times in the graph: the rule advisor's input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping, RelationMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.times import checked_ns_expression

MIN_NODES, MIN_EDGES = 3, 2  # with fewer there is no order to test

NODE_TIMES = """
MATCH (n:{label}) WHERE n.{key} IS NOT NULL
WITH n, n.{created} AS t
WITH n, {ns} AS ns WHERE ns IS :: INTEGER NOT NULL
RETURN collect(elementId(n)) AS ids, collect(ns) AS times,
       collect(coalesce(toStringOrNull(n.{class_}), '')) AS classes
"""

EDGE_TIMES = """
MATCH (a:{label})-[r:{type}]->(b:{label}) WHERE a <> b
WITH a, b, {created} AS t
RETURN collect([elementId(a), elementId(b), {ns}]) AS edges
"""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Times of nodes [n], pairs of node rows [2, m] and the times of these edges [m].

    Times are those that the graph has: the order within a run counts too. `classes` are numbers
    of the nodes' classes [n], -1 where a class is not known.
    """

    node_time: NDArray[np.int64]
    edges: NDArray[np.int64]
    edge_time: NDArray[np.int64]
    classes: NDArray[np.int64]


def read_arrivals(graph: Graph, mapping: GraphMapping) -> Arrivals | None:
    """Read times of nodes and edges, and classes; None where there are too few.

    Where nodes have no creation time there is no order to read either.
    """
    if not mapping.classified.created_at:
        return None
    rows, times, classes = _read_nodes(graph, mapping)
    edges = [
        (min(rows[a], rows[b]), max(rows[a], rows[b]), ns)
        for kind in mapping.classified_relations
        for a, b, ns in _read_edges(graph, mapping, kind)
        if a in rows and b in rows
    ]
    if len(edges) < MIN_EDGES or len(times) < MIN_NODES:
        return None
    pairs = np.array([(low, high) for low, high, _ in edges], np.int64)
    later = times[pairs].max(axis=1)  # an edge without a time comes with its later end
    moments = np.array(
        [end if ns is None else ns for end, (_, _, ns) in zip(later, edges, strict=True)], np.int64
    )
    pairs, moments = _oldest_per_pair(pairs, moments)
    return Arrivals(times, pairs.T, moments, classes) if len(pairs) >= MIN_EDGES else None


def _read_nodes(
    graph: Graph, mapping: GraphMapping
) -> tuple[dict[str, int], NDArray[np.int64], NDArray[np.int64]]:
    query = NODE_TIMES.format(
        label=quote(mapping.classified.label),
        key=quote(mapping.classified.key),
        created=quote(str(mapping.classified.created_at)),
        class_=quote(mapping.class_property),
        ns=checked_ns_expression(mapping.time_kind, "t"),
    )
    nodes = graph.read(query)[0]
    numbers = {name: i for i, name in enumerate(sorted({*nodes["classes"]} - {""}))}
    classes = np.array([numbers.get(name, -1) for name in nodes["classes"]], np.int64)
    rows = {id_: row for row, id_ in enumerate(nodes["ids"])}
    return rows, np.array(nodes["times"], np.int64), classes


def _read_edges(
    graph: Graph, mapping: GraphMapping, kind: RelationMapping
) -> list[tuple[str, str, int | None]]:
    """Edges with their times; one that can't be used counts as none."""
    query = EDGE_TIMES.format(
        label=quote(mapping.classified.label),
        type=quote(kind.type),
        created=f"r.{quote(kind.created_at)}" if kind.created_at else "null",
        ns=checked_ns_expression(mapping.time_kind, "t"),
    )
    edges: list[tuple[str, str, object]] = graph.read(query)[0]["edges"]
    return [(a, b, ns if isinstance(ns, int) else None) for a, b, ns in edges]


def _oldest_per_pair(
    pairs: NDArray[np.int64], moments: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.lexsort((moments, pairs[:, 1], pairs[:, 0]))
    pairs, moments = pairs[order], moments[order]
    first = np.append(True, (pairs[1:] != pairs[:-1]).any(axis=1))
    return pairs[first], moments[first]
