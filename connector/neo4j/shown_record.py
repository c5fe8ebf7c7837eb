"""What the graph shows of a project's record beside its sets: runs, classes, coverage, the fence.

`ringfence verify` compares it with what SQL decided, property by property.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ringfence.connector.keys import encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.migrate import cypher_files
from ringfence.connector.neo4j.quoting import quote

# a run of the project by its property, or by its id: someone may have changed one of the two
RUNS = """
MATCH (r:RingfenceRun) WHERE r.project = $project OR r.id STARTS WITH $prefix
RETURN properties(r) AS facts, count { (r)<-[:EVALUATED]-() } AS evaluated
"""

# EVALUATED whose key is no text of this project: no list by key shows it
WITHOUT_KEY = """
MATCH ()-[e:EVALUATED]->(:RingfenceRun {id: $run})
WHERE NOT coalesce(e.key STARTS WITH $prefix, false)
RETURN count(e) AS n
"""

CLASSES = "MATCH (c:RingfenceClass {project: $project}) RETURN c.name AS name"

UNEVALUATED = """
MATCH (:RingfenceClass {{project: $project}})<-[:MAY_BE]-(n)
WHERE NOT EXISTS {{ (n)-[:EVALUATED]->(:RingfenceRun {{project: $project}}) }}
RETURN DISTINCT n.{key} AS key LIMIT $rows
"""

COVERAGE = """
MATCH (a:CoverageAudit) WHERE a.project = $project OR a.id STARTS WITH $prefix
RETURN properties(a) AS facts, [(a)-[:AUDITS]->(r) | r.id] AS audits
"""

FENCE = "MATCH (f:RingfenceFence {project: $project}) RETURN f.token AS token"

MIGRATIONS = "MATCH (m:RingfenceMigration) RETURN m.number AS number, m.name AS name"

CONSTRAINTS = "SHOW CONSTRAINTS YIELD name, labelsOrTypes, properties RETURN *"

CONSTRAINT = re.compile(r"CREATE CONSTRAINT (\w+) IF NOT EXISTS\s+FOR \S*?:(\w+)")


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node of ours: its properties, and what it is related to: runs, or how many nodes."""

    facts: Mapping[str, Any]
    related: tuple[Any, ...]


def read_shown_runs(graph: Graph, project: str) -> list[ShownNode]:
    """Return the project's runs with the number of their EVALUATED."""
    rows = graph.read(RUNS, project=project, prefix=f"{project}/")
    return [ShownNode(row["facts"], (row["evaluated"],)) for row in rows]


def count_without_key(graph: Graph, project: str, run: str) -> int:
    """Return how many EVALUATED of a run have no key of the project."""
    return int(graph.read(WITHOUT_KEY, run=run, prefix=f"{project}/")[0]["n"])


def read_shown_classes(graph: Graph, project: str) -> list[Any]:
    """Return the names of the project's class nodes."""
    return [row["name"] for row in graph.read(CLASSES, project=project)]


def find_unevaluated(graph: Graph, mapping: GraphMapping, project: str, rows: int) -> list[str]:
    """Return typed keys of nodes with MAY_BE but without EVALUATED; at most `rows`."""
    query = UNEVALUATED.format(key=quote(mapping.key))
    found = graph.read(query, project=project, rows=rows)
    return ["without a key" if row["key"] is None else encode_key(row["key"]) for row in found]


def read_shown_coverage(graph: Graph, project: str) -> list[ShownNode]:
    """Return the project's (:CoverageAudit) nodes with the ids of the runs that they audit."""
    rows = graph.read(COVERAGE, project=project, prefix=f"{project}/")
    return [ShownNode(row["facts"], tuple(row["audits"])) for row in rows]


def read_fence_token(graph: Graph, project: str) -> Any:
    """Return the fence's token as it stands there; None where there is no fence."""
    rows = graph.read(FENCE, project=project)
    return rows[0]["token"] if rows else None


def find_schema_edits(graph: Graph) -> Iterator[str]:
    """Yield what of our migrations' nodes and constraints is not as the Cypher files made it."""
    names = {row["number"]: row["name"] for row in graph.read(MIGRATIONS)}
    standing = {row["name"]: row["labelsOrTypes"] for row in graph.read(CONSTRAINTS)}
    for file in cypher_files():
        if names.get(file.number) != file.name:
            yield f"RingfenceMigration {file.number}: name is {names.get(file.number)!r}"
        for constraint, label in CONSTRAINT.findall(file.text):
            if standing.get(constraint) != [label]:
                yield f"the constraint {constraint} on {label} is gone: ringfence's keys are unique"


def changed_properties(shown: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Return the names of the properties that are not as expected; None is an absent one."""
    present = {name: value for name, value in expected.items() if value is not None}
    names = sorted({*shown, *present})
    return [name for name in names if not _is_same(shown.get(name), present.get(name))]


def _is_same(shown: Any, expected: Any) -> bool:
    if isinstance(expected, datetime):
        from neo4j.time import DateTime  # the driver is slow to import

        return isinstance(shown, DateTime) and shown == DateTime.from_native(expected)
    return type(shown) is type(expected) and shown == expected
