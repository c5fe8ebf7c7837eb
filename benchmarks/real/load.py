"""Write rows of a table into Neo4j as nodes with their raw columns, and pairs as relationships."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote

ROWS = 10_000
Row = Mapping[str, Any]


def write_nodes(graph: Graph, label: str, rows: Iterable[Row]) -> None:
    """Create nodes; a value of None is a property that is not there."""
    query = f"UNWIND $rows AS row CREATE (n:{quote(label)}) SET n += row"
    for part in blocks(rows):
        graph.run(query, rows=part)


def set_properties(graph: Graph, label: str, key: str, rows: Iterable[Row]) -> None:
    """Set properties of nodes that exist; each row has the key."""
    query = f"UNWIND $rows AS row MATCH (n:{quote(label)} {{{quote(key)}: row[$key]}}) SET n += row"
    for part in blocks(rows):
        graph.run(query, rows=part, key=key)


def write_relationships(
    graph: Graph,
    source: tuple[str, str],
    type_: str,
    target: tuple[str, str],
    pairs: Iterable[tuple[Any, Any]],
) -> None:
    """Join existing nodes by their keys; `source` and `target` are (label, key)."""
    query = (
        f"UNWIND $rows AS row "
        f"MATCH (a:{quote(source[0])} {{{quote(source[1])}: row[0]}}) "
        f"MATCH (b:{quote(target[0])} {{{quote(target[1])}: row[1]}}) "
        f"CREATE (a)-[:{quote(type_)}]->(b)"
    )
    for part in blocks([list(pair) for pair in pairs]):
        graph.run(query, rows=part)


def index_keys(graph: Graph, keys: Mapping[str, str]) -> None:
    """Create an ordinary unique constraint per label, as a loader of its own would."""
    for label, key in keys.items():
        graph.run(
            f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{quote(label)}) "
            f"REQUIRE n.{quote(key)} IS UNIQUE"
        )
    graph.read("CALL db.awaitIndexes(600)")


def blocks(rows: Iterable[Any]) -> Iterable[Sequence[Any]]:
    """Yield rows in portions."""
    iterator = iter(rows)
    while part := list(islice(iterator, ROWS)):
        yield part
