"""Migrate the graph to this code's version: idempotent; downgrades are refused."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ringfence.connector.errors import GraphError, WrongVersion
from ringfence.connector.mapping import GraphMapping, NodeMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote


@dataclass(frozen=True, slots=True)
class CypherFile:
    """One numbered file of statements."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Hash that is recorded in the graph when the file was applied."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def statements(self) -> Iterator[str]:
        """Yield the statements without comments."""
        bare = re.sub(r"^\s*//.*$", "", self.text, flags=re.MULTILINE)
        yield from (part.strip() for part in bare.split(";") if part.strip())


def cypher_files() -> list[CypherFile]:
    """Return the numbered files of migrations/cypher, oldest first."""
    folder = Path(str(files("ringfence.migrations").joinpath("cypher")))
    return [
        CypherFile(int(path.name[:4]), path.stem, path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.cypher"))
    ]


APPLIED = "MATCH (m:RingfenceMigration) RETURN m.number AS number, m.checksum AS checksum"
RECORD = """
MERGE (m:RingfenceMigration {number: $number})
ON CREATE SET m.name = $name, m.checksum = $checksum, m.at = datetime()
"""


def migrate_graph(graph: Graph) -> list[str]:
    """Apply the missing Cypher files and record their checksums; report which."""
    known = cypher_files()
    applied = _applied(graph, known)
    done = []
    for file in known:
        if file.number in applied:
            continue
        for statement in file.statements():
            if "IN TRANSACTIONS" in statement:
                graph.run_in_parts(statement)
            else:
                graph.run(statement)
        graph.run(RECORD, number=file.number, name=file.name, checksum=file.checksum)
        done.append(f"graph {file.number:04}: {file.name}")
    return done


def is_new(graph: Graph) -> bool:
    """Whether no version of ringfence has migrated this graph yet."""
    return not graph.read(APPLIED)


def require_graph(graph: Graph) -> None:
    """Raise `WrongVersion` unless every Cypher file, unchanged, has been applied."""
    known = cypher_files()
    missing = [file.name for file in known if file.number not in _applied(graph, known)]
    if missing:
        raise WrongVersion(
            found=f"the graph lacks ringfence's constraints ({', '.join(missing)})",
            needed="them: they are what makes 'once per node' a fact",
            next_step="ringfence migrate",
        )


def _applied(graph: Graph, known: list[CypherFile]) -> set[int]:
    rows = {row["number"]: row["checksum"] for row in graph.read(APPLIED)}
    by_number = {file.number: file for file in known}
    for number, checksum in rows.items():
        if number not in by_number:
            raise WrongVersion(
                found=f"the graph has migration {number:04}, which this ringfence doesn't know",
                needed=f"{max(by_number):04} at the latest; a newer ringfence has been here",
                next_step="pip install --upgrade ringfence",
            )
        if by_number[number].checksum != checksum:
            raise WrongVersion(
                found=f"migration {by_number[number].name} was changed after it had been applied",
                needed="the file as it was; changes belong into a new file",
            )
    return set(rows)


def create_user_indexes(graph: Graph, mapping: GraphMapping) -> list[str]:
    """Create the unique constraints and range indexes that reading by key and time needs.

    With several labels every label gets its constraint: context is found by its key.
    """
    before = _schema_names(graph)
    for node in mapping.nodes:
        _require_unique(graph, node)
        if node.created_at:
            label, created = quote(node.label), quote(node.created_at)
            graph.run(f"CREATE INDEX IF NOT EXISTS FOR (n:{label}) ON (n.{created})")
    for relation in mapping.relations:
        if relation.created_at:
            kind, time = quote(relation.type), quote(relation.created_at)
            graph.run(f"CREATE INDEX IF NOT EXISTS FOR ()-[r:{kind}]-() ON (r.{time})")
    graph.read("CALL db.awaitIndexes(600)")
    return [f"graph index on {what}" for what in sorted(_schema_names(graph) - before)]


def _require_unique(graph: Graph, node: NodeMapping) -> None:
    label, key = quote(node.label), quote(node.key)
    try:
        graph.run(f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{label}) REQUIRE n.{key} IS UNIQUE")
    except GraphError as error:
        if "ConstraintCreationFailed" in error.found:
            raise _duplicates(graph, node) from None
        if index := _plain_index(graph, node):
            raise _index_in_the_way(node, index) from None
        raise


def _schema_names(graph: Graph) -> set[str]:
    rows = graph.read(
        "SHOW INDEXES YIELD labelsOrTypes, properties WHERE labelsOrTypes IS NOT NULL "
        "RETURN labelsOrTypes[0] + '.' + properties[0] AS name"
    )
    return {row["name"] for row in rows}


# range indexes that no constraint owns: with one of them Neo4j refuses to make the constraint
PLAIN_INDEXES = """
SHOW INDEXES YIELD name, type, labelsOrTypes, properties, owningConstraint
WHERE type = 'RANGE' AND owningConstraint IS NULL
  AND labelsOrTypes = [$label] AND properties = [$key]
RETURN name
"""


def _plain_index(graph: Graph, node: NodeMapping) -> str | None:
    rows = graph.read(PLAIN_INDEXES, label=node.label, key=node.key)
    return str(rows[0]["name"]) if rows else None


def _index_in_the_way(node: NodeMapping, index: str) -> GraphError:
    return GraphError(
        found=f"an ordinary index, {index}, stands on {node.key} of :{node.label}; Neo4j "
        "makes no unique constraint beside it",
        needed="a unique constraint, which brings an index of its own for the same queries",
        next_step=f"in Neo4j: DROP INDEX {quote(index)} IF EXISTS;   then: ringfence migrate",
    )


def _duplicates(graph: Graph, node: NodeMapping) -> GraphError:
    label, key = quote(node.label), quote(node.key)
    rows = graph.read(
        f"MATCH (n:{label}) WITH n.{key} AS key, count(*) AS nodes WHERE nodes > 1 "
        "AND key IS NOT NULL RETURN key, nodes ORDER BY nodes DESC LIMIT 3"
    )
    sample = ", ".join(f"{row['key']!r} ({row['nodes']} nodes)" for row in rows)
    return GraphError(
        found=f"keys of :{node.label} are not unique: {sample}",
        needed=f"one node per value of {node.key}; a set must belong to one node",
        next_step="choose another [graph] key, or merge the nodes",
    )
