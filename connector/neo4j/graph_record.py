"""What the graph shows of a project's record besides sets: runs, classes, coverage, the fence.

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

OWN_PROPERTIES = {
    "EVALUATED": ("key", "size", "alpha", "level", "band", "sampled", "lists"),
    "MAY_BE": ("p", "in_set"),
    "AUDITS": (),
    "RingfenceClass": ("project", "name"),
    "RingfenceFence": ("project", "token", "asked", "chain_n", "chain_hash", "public_key"),
    "RingfenceMigration": ("number", "name", "checksum", "at"),
}
"""What ringfence writes on its relationships and on nodes that are not compared as a whole."""

# a run of the project by its property, or by its id: someone may have changed one of the two
RUNS = """
MATCH (r:RingfenceRun) WHERE r.project = $project OR r.id STARTS WITH $prefix
RETURN properties(r) AS facts
"""

# EVALUATED whose key is no text of this project (no list by key shows it), and with properties
# that are not ours; one pass over a run's relationships
ODD_EVALUATED = """
MATCH ()-[e:EVALUATED]->(:RingfenceRun {id: $run})
WITH NOT coalesce(e.key STARTS WITH $prefix, false) AS unkeyed,
     any(name IN keys(e) WHERE NOT name IN $own) AS extra
WHERE unkeyed OR extra
RETURN sum(CASE WHEN unkeyed THEN 1 ELSE 0 END) AS unkeyed,
       sum(CASE WHEN extra THEN 1 ELSE 0 END) AS extra
"""

# the same of the sets of one run's nodes
ODD_MAY_BE = """
MATCH (n)-[:EVALUATED]->(:RingfenceRun {id: $run})
MATCH (n)-[e:MAY_BE]->(:RingfenceClass) WHERE any(name IN keys(e) WHERE NOT name IN $own)
RETURN count(e) AS extra
"""

EXTRA_OF_SETS = (
    "MATCH ()-[e:MAY_BE]->(:RingfenceClass {project: $project}) "
    "WHERE any(name IN keys(e) WHERE NOT name IN $own) "
    "RETURN 'MAY_BE' AS kind, count(e) AS n"
)

EXTRA_PROPERTIES = (
    "MATCH (:CoverageAudit {project: $project})-[e:AUDITS]->() "
    "WHERE any(name IN keys(e) WHERE NOT name IN $AUDITS) "
    "RETURN 'AUDITS' AS kind, count(e) AS n "
    "UNION ALL MATCH (e:RingfenceClass {project: $project}) "
    "WHERE any(name IN keys(e) WHERE NOT name IN $RingfenceClass) "
    "RETURN 'RingfenceClass' AS kind, count(e) AS n "
    "UNION ALL MATCH (e:RingfenceFence {project: $project}) "
    "WHERE any(name IN keys(e) WHERE NOT name IN $RingfenceFence) "
    "RETURN 'RingfenceFence' AS kind, count(e) AS n "
    "UNION ALL MATCH (e:RingfenceMigration) "
    "WHERE any(name IN keys(e) WHERE NOT name IN $RingfenceMigration) "
    "RETURN 'RingfenceMigration' AS kind, count(e) AS n"
)

# nodes that whoever counts by label takes for ours, and that no project's verification would meet
OF_NO_PROJECT = (
    "MATCH (e:RingfenceClass) WHERE e.project IS NULL RETURN 'RingfenceClass' AS kind, "
    "count(e) AS n UNION ALL MATCH (e:RingfenceRun) WHERE e.project IS NULL "
    "RETURN 'RingfenceRun' AS kind, count(e) AS n UNION ALL MATCH (e:RingfenceFence) "
    "WHERE e.project IS NULL RETURN 'RingfenceFence' AS kind, count(e) AS n"
)

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

CONSTRAINTS = "SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties RETURN *"

CONSTRAINT = re.compile(
    r"CREATE CONSTRAINT (\w+) IF NOT EXISTS\s+FOR \S*?:(\w+)\S* REQUIRE (.+?) IS UNIQUE"
)


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node of ours: its properties, and the ids of the runs that it points to."""

    facts: Mapping[str, Any]
    related: tuple[Any, ...] = ()


def read_shown_runs(graph: Graph, project: str) -> list[ShownNode]:
    """Return the project's runs."""
    rows = graph.read(RUNS, project=project, prefix=f"{project}/")
    return [ShownNode(row["facts"]) for row in rows]


def count_odd_evaluated(graph: Graph, project: str, run: str) -> tuple[int, int]:
    """Return how many EVALUATED of a run have no key of the project, and how many say too much."""
    ours = list(OWN_PROPERTIES["EVALUATED"])
    (row,) = graph.read(ODD_EVALUATED, run=run, prefix=f"{project}/", own=ours)
    return int(row["unkeyed"]), int(row["extra"])


def count_odd_may_be(graph: Graph, run: str) -> int:
    """Return how many MAY_BE of a run's nodes have properties that are not ours."""
    (row,) = graph.read(ODD_MAY_BE, run=run, own=list(OWN_PROPERTIES["MAY_BE"]))
    return int(row["extra"])


def find_extra_properties(graph: Graph, project: str, *, of_sets: bool) -> Iterator[str]:
    """Yield how many of our relationships and nodes have properties that are not ours, or none.

    With `of_sets` all MAY_BE are gone through as well.
    """
    by_kind = {
        kind: list(names)
        for kind, names in OWN_PROPERTIES.items()
        if kind not in ("EVALUATED", "MAY_BE")
    }
    rows = graph.read(EXTRA_PROPERTIES, project=project, **by_kind)
    if of_sets:
        may_be = list(OWN_PROPERTIES["MAY_BE"])
        rows = [*graph.read(EXTRA_OF_SETS, project=project, own=may_be), *rows]
    for row in rows:
        if row["n"]:
            yield f"{row['kind']}: {row['n']} with properties that are not ringfence's"
    for row in graph.read(OF_NO_PROJECT):
        if row["n"]:
            yield f"{row['kind']}: {row['n']} of no project"


def read_shown_classes(graph: Graph, project: str) -> list[Any]:
    """Return the names of the project's class nodes."""
    return [row["name"] for row in graph.read(CLASSES, project=project)]


def find_unevaluated(graph: Graph, mapping: GraphMapping, project: str, rows: int) -> list[str]:
    """Return typed keys of nodes with MAY_BE but without EVALUATED; at most `rows`."""
    query = UNEVALUATED.format(key=quote(mapping.classified.key))
    records = graph.read(query, project=project, rows=rows)
    return ["without a key" if row["key"] is None else encode_key(row["key"]) for row in records]


def read_shown_coverage(graph: Graph, project: str) -> list[ShownNode]:
    """Return the project's (:CoverageAudit) nodes with the ids of the runs that they audit."""
    rows = graph.read(COVERAGE, project=project, prefix=f"{project}/")
    return [ShownNode(row["facts"], tuple(row["audits"])) for row in rows]


def read_fence_token(graph: Graph, project: str) -> Any:
    """Return the fence's token as it stands there; None where there is no fence."""
    rows = graph.read(FENCE, project=project)
    return rows[0]["token"] if rows else None


def find_schema_edits(graph: Graph) -> Iterator[str]:
    """Yield differences between our migrations' nodes and constraints and the Cypher files."""
    names = {row["number"]: row["name"] for row in graph.read(MIGRATIONS)}
    standing = {
        row["name"]: (row["labelsOrTypes"], row["properties"])
        for row in graph.read(CONSTRAINTS)
        if "UNIQUE" in row["type"]
    }
    for file in cypher_files():
        if names.get(file.number) != file.name:
            yield f"RingfenceMigration {file.number}: name is {names.get(file.number)!r}"
        for constraint, label, required in CONSTRAINT.findall(file.text):
            properties = re.findall(r"\.(\w+)", required)
            labels, on = standing.get(constraint, ([], []))
            if labels != [label]:
                yield f"the constraint {constraint} on {label} is gone: ringfence's keys are unique"
            elif on != properties:
                yield (
                    f"the constraint {constraint} on {label} is about {', '.join(on)}, not "
                    f"{', '.join(properties)}: ringfence's keys are unique"
                )


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
