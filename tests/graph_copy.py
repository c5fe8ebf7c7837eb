"""A copy of everything in a Neo4j database, and writing it back: schema, nodes, relationships.

Every change of the schema makes Neo4j plan all queries anew, which costs a test seconds. So a
constraint or index that the next test has as well is left where it is: `match_schema` changes
what differs, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, LiteralString, cast

from neo4j import Driver

Row = dict[str, Any]

NODES = "MATCH (n) RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties"
RELATIONSHIPS = """
MATCH (a)-[r]->(b)
RETURN elementId(a) AS source, elementId(b) AS target, type(r) AS type, properties(r) AS properties
"""
CONSTRAINTS = "SHOW CONSTRAINTS YIELD name, createStatement"
INDEXES = """
SHOW INDEXES YIELD name, type, owningConstraint, createStatement
WHERE type <> 'LOOKUP' AND owningConstraint IS NULL
"""
CREATE_NODES = "UNWIND $rows AS row CREATE (n{labels}) SET n = row RETURN elementId(n) AS id"
CREATE_RELATIONSHIPS = """
UNWIND $rows AS row
MATCH (a) WHERE elementId(a) = row.source
MATCH (b) WHERE elementId(b) = row.target
CREATE (a)-[r:`{type}`]->(b) SET r = row.properties
"""


@dataclass(frozen=True, slots=True)
class Graph:
    """The Neo4j database of one test."""

    driver: Driver
    uri: str
    auth: tuple[str, str]

    def run(self, query: str, **parameters: Any) -> list[Row]:
        """The rows of an auto-commit query (so that CALL ... IN TRANSACTIONS works too)."""
        with self.driver.session(database="neo4j") as session:
            return session.run(cast(LiteralString, query), parameters).data()


@dataclass(frozen=True, slots=True)
class Schema:
    """The statements that create constraints and indexes, by name."""

    constraints: Mapping[str, str]
    indexes: Mapping[str, str]


EMPTY_SCHEMA = Schema({}, {})


@dataclass(frozen=True, slots=True)
class GraphCopy:
    """All that a database holds; `nodes` and `relationships` are rows of the queries above."""

    schema: Schema
    nodes: list[Row]
    relationships: list[Row]


def read_graph(graph: Graph) -> GraphCopy:
    """Copy the whole database into memory."""
    return GraphCopy(read_schema(graph), graph.run(NODES), graph.run(RELATIONSHIPS))


def read_schema(graph: Graph) -> Schema:
    """Return the constraints, and the indexes that belong to none of them."""
    constraints, indexes = graph.run(CONSTRAINTS), graph.run(INDEXES)
    return Schema(
        {row["name"]: row["createStatement"] for row in constraints},
        {row["name"]: row["createStatement"] for row in indexes},
    )


def write_graph(graph: Graph, copy: GraphCopy) -> None:
    """Make an empty database hold what the copy holds; element ids become other ones."""
    match_schema(graph, copy.schema)
    ids: dict[str, str] = {}
    for labels, nodes in _group_rows(copy.nodes, "labels").items():
        query = CREATE_NODES.format(labels="".join(f":`{label}`" for label in labels))
        created = graph.run(query, rows=[node["properties"] for node in nodes])
        ids |= {node["id"]: row["id"] for node, row in zip(nodes, created, strict=True)}
    for (kind,), relationships in _group_rows(copy.relationships, "type").items():
        rows = [
            row | {"source": ids[row["source"]], "target": ids[row["target"]]}
            for row in relationships
        ]
        graph.run(CREATE_RELATIONSHIPS.format(type=kind), rows=rows)


def match_schema(graph: Graph, wanted: Schema) -> None:
    """Drop the constraints and indexes that are not wanted, create those that are missing."""
    present = read_schema(graph)
    statements = [
        *_drop_statements("CONSTRAINT", present.constraints, wanted.constraints),
        *_drop_statements("INDEX", present.indexes, wanted.indexes),
    ]
    _change_schema(graph, statements)
    missing = dict(wanted.constraints.items() - present.constraints.items())
    missing |= dict(wanted.indexes.items() - present.indexes.items())
    if missing:
        _change_schema(graph, list(missing.values()))
        graph.run("CALL db.awaitIndexes(600)")


def empty_graph(graph: Graph, schema: Schema = EMPTY_SCHEMA) -> None:
    """Delete everything: nodes, relationships, constraints, indexes that `schema` does not have."""
    delete_nodes(graph)
    match_schema(graph, schema)


def unique_keys(pairs: Iterable[tuple[str, str]]) -> Schema:
    """Return the schema in which these properties of these labels are unique."""
    statements = {
        f"unique {label} {key}": f"CREATE CONSTRAINT `unique {label} {key}` "
        f"FOR (n:`{label}`) REQUIRE (n.`{key}`) IS UNIQUE"
        for label, key in pairs
    }
    return Schema(statements, {})


def delete_nodes(graph: Graph) -> None:
    """Delete all nodes and relationships."""
    if graph.run("MATCH (n) RETURN count(n) AS nodes")[0]["nodes"]:
        graph.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS")
    assert graph.run("MATCH (n) RETURN count(n) AS nodes") == [{"nodes": 0}]


def _drop_statements(kind: str, present: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    return [
        f"DROP {kind} `{name}`"
        for name, statement in present.items()
        if wanted.get(name) != statement
    ]


def _change_schema(graph: Graph, statements: list[str]) -> None:
    if statements:
        with (
            graph.driver.session(database="neo4j") as session,
            session.begin_transaction() as open_,
        ):
            for statement in statements:
                open_.run(cast(LiteralString, statement))
            open_.commit()


def _group_rows(rows: list[Row], key: str) -> dict[tuple[str, ...], list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        value = row[key]
        groups.setdefault((value,) if isinstance(value, str) else tuple(value), []).append(row)
    return groups
