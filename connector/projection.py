"""What stands in the graph: a projection of what SQL decided; writing it again is harmless.

Every transaction first shows its lease token to the project's fence node: a process that slept
through its lease carries a smaller token than its successor and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from neo4j import ManagedTransaction
from sqlalchemy import Row

from ringfence.connector import checkpoints
from ringfence.connector.errors import LeaseLost
from ringfence.connector.graph import Graph
from ringfence.connector.keys import decode_key
from ringfence.connector.lease import Lease
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.quoting import quote
from ringfence.connector.times import NANOSECONDS

T = TypeVar("T")

# The first SET takes the lock: a token read before it may be older than what another has written.
FENCE = """
MERGE (f:RingfenceFence {project: $project}) ON CREATE SET f.token = $token
SET f.asked = $token
WITH f WHERE f.token <= $token
SET f.token = $token
RETURN f.token AS token
"""

RUN = """
MERGE (r:RingfenceRun {id: $id})
ON CREATE SET r += $facts
WITH r UNWIND $classes AS name
MERGE (:RingfenceClass {project: $project, name: name})
"""

# One look at a node's relationships tells what stands already; it is left as it is, and only what
# is missing is created. A MERGE per node costs as much as everything else in this query. A class
# node that someone deleted meanwhile comes back: without it all places after it would be shifted.
SETS = """
MATCH (run:RingfenceRun {{id: $run}})
UNWIND $names AS name
MERGE (c:RingfenceClass {{project: $project, name: name}})
WITH run, collect(c) AS classes
UNWIND $rows AS row
MATCH (n:{label} {{{key}: row[0]}})
WITH run, classes, n, row,
  [(n)-[r:EVALUATED|MAY_BE]->(other) WHERE r:MAY_BE OR r.key = row[1] | other] AS there
FOREACH (to IN [to IN [run] WHERE NOT to IN there] |
  CREATE (n)-[:EVALUATED {{key: row[1], size: row[2], alpha: $alpha}}]->(to))
FOREACH (i IN range(0, row[2] - 1) |
  FOREACH (to IN [to IN [classes[row[3][i]]] WHERE NOT to IN there] |
    CREATE (n)-[:MAY_BE {{p: row[4][i]}}]->(to)))
RETURN collect(row[1]) AS evaluated
"""

COVERAGE = """
UNWIND $rows AS row
MATCH (r:RingfenceRun {id: row.run})
MERGE (a:CoverageAudit {id: row.id})
SET a += row.facts
MERGE (a)-[:AUDITS]->(r)
"""

COVERAGE_SHOWN = """
MATCH (a:CoverageAudit {project: $project})
RETURN a.id AS id, a.at AS at
"""

COVERAGE_GONE = """
UNWIND $ids AS id
MATCH (a:CoverageAudit {id: id})
DETACH DELETE a
"""


MEND = """
UNWIND $rows AS row
MATCH (n:{label} {{{key}: row[0]}})
OPTIONAL MATCH (n)-[m:MAY_BE]->(:RingfenceClass {{project: $project}})
DELETE m
WITH DISTINCT n, row
OPTIONAL MATCH (n)-[e:EVALUATED {{key: row[1]}}]->()
DELETE e
"""

STRAYS = """
UNWIND $keys AS key
MATCH (n)-[e:EVALUATED {key: key}]->()
DELETE e
WITH n OPTIONAL MATCH (n)-[m:MAY_BE]->(:RingfenceClass {project: $project})
DELETE m
"""

ANCHOR = """
MATCH (f:RingfenceFence {project: $project})
WHERE coalesce(f.chain_n, 0) <= $n
SET f.chain_n = $n, f.chain_hash = $hash
"""


@dataclass(frozen=True, slots=True)
class PreparedSets:
    """A block of sets, ready to be sent: typed keys, one list per node, the classes' names."""

    keys: list[str]
    rows: list[list[Any]]
    classes: list[str]


def run_id(project: str, seq: int) -> str:
    """Return the id of a run's node.

    >>> run_id("payments", 7)
    'payments/7'
    """
    return f"{project}/{seq}"


def has_run(graph: Graph, project: str, seq: int) -> bool:
    """Whether the graph shows run `seq`."""
    rows = graph.read(
        "MATCH (r:RingfenceRun {id: $id}) RETURN r.seq AS seq", id=run_id(project, seq)
    )
    return bool(rows)


def fence_token(graph: Graph, project: str) -> int:
    """Return the highest lease token that has written to the graph; 0 where none has."""
    rows = graph.read(
        "MATCH (f:RingfenceFence {project: $project}) RETURN f.token AS token", project=project
    )
    return int(rows[0]["token"]) if rows else 0


def write_run(graph: Graph, held: Lease, row: Row[Any], classes: Sequence[str]) -> None:
    """Create the run's node and the class nodes that its sets will point to."""
    facts = {
        "project": row.project,
        "seq": row.seq,
        "at": _moment(row.decided_ns),
        "rule": row.rule,
        "alpha": row.alpha,
        "threshold": row.threshold,
        "calibration": row.n_calibration,
        "model": row.model,
    }
    _fenced(
        graph,
        held,
        lambda tx: tx.run(
            RUN,
            id=run_id(row.project, row.seq),
            facts=facts,
            classes=list(classes),
            project=row.project,
        ).consume(),
    )


def prepare_sets(block: Sequence[Row[Any]], classes: Sequence[str]) -> PreparedSets:
    """Return a block of stored predictions as Neo4j takes it; needs neither store nor graph."""
    places = {name: place for place, name in enumerate(classes)}
    return PreparedSets(
        [one.node_key for one in block], [_row(one, places) for one in block], list(classes)
    )


def write_sets(
    graph: Graph, held: Lease, mapping: GraphMapping, row: Row[Any], sets: PreparedSets
) -> list[str]:
    """Write a block of sets in one transaction; return the keys whose node is no longer there."""
    query = SETS.format(label=quote(mapping.label), key=quote(mapping.key))

    def work(tx: ManagedTransaction) -> set[str]:
        result = tx.run(
            query,
            run=run_id(row.project, row.seq),
            rows=sets.rows,
            names=sets.classes,
            project=row.project,
            alpha=row.alpha,
        )
        written = {key for record in result for key in record["evaluated"]}
        checkpoints.at("inside block")
        return written

    written = _fenced(graph, held, work)
    return [key for key, one in zip(sets.keys, sets.rows, strict=True) if one[1] not in written]


def mend_sets(
    graph: Graph, held: Lease, mapping: GraphMapping, row: Row[Any], sets: PreparedSets
) -> None:
    """Replace damaged projections of a run's predictions by what SQL decided."""
    query = MEND.format(label=quote(mapping.label), key=quote(mapping.key))
    _fenced(graph, held, lambda tx: tx.run(query, rows=sets.rows, project=row.project).consume())
    write_sets(graph, held, mapping, row, sets)


def remove_strays(graph: Graph, held: Lease, keys: Sequence[str]) -> None:
    """Remove EVALUATED relationships that no prediction stands behind."""
    values = [f"{held.project}/{key}" for key in keys]
    _fenced(
        graph,
        held,
        lambda tx: tx.run(STRAYS, keys=values, project=held.project).consume(),
    )


def anchor(graph: Graph, held: Lease, n: int, hash_: str) -> None:
    """Keep the chain's head in the graph, where whoever edits the SQL store can't reach it."""
    _fenced(
        graph,
        held,
        lambda tx: tx.run(ANCHOR, project=held.project, n=n, hash=hash_).consume(),
    )


def anchored(graph: Graph, project: str) -> tuple[int, str] | None:
    """Return number and hash of the chain entry that the graph remembers."""
    rows = graph.read(
        "MATCH (f:RingfenceFence {project: $project}) WHERE f.chain_n IS NOT NULL "
        "RETURN f.chain_n AS n, f.chain_hash AS hash",
        project=project,
    )
    return (int(rows[0]["n"]), str(rows[0]["hash"])) if rows else None


def show_coverage(graph: Graph, held: Lease, stored: Sequence[Row[Any]]) -> None:
    """Bring (:CoverageAudit) nodes to what SQL holds; late classes change them, some move on.

    The graph is asked what it shows: an audit before may have died between the two stores.
    """
    asked = graph.read(COVERAGE_SHOWN, project=held.project)
    shown = {row["id"]: row["at"].to_native() for row in asked}
    rows = {_coverage_id(row): row for row in stored}
    values = [
        {"id": id_, "run": run_id(row.project, row.seq), "facts": _coverage_facts(row)}
        for id_, row in rows.items()
        if shown.get(id_) != _moment(row.audited_ns)
    ]
    gone = sorted(shown.keys() - rows.keys())

    def work(tx: ManagedTransaction) -> None:
        tx.run(COVERAGE, rows=values).consume()
        tx.run(COVERAGE_GONE, ids=gone).consume()

    _fenced(graph, held, work)


def _coverage_facts(row: Row[Any]) -> dict[str, Any]:
    facts = row._asdict()
    return {**facts, "at": _moment(facts.pop("audited_ns"))}


def _coverage_id(row: Row[Any]) -> str:
    name = f"/{row.name}" if row.name else ""
    return f"{run_id(row.project, row.seq)}/{row.slice}{name}"


def _row(one: Row[Any], places: Mapping[str, int]) -> list[Any]:
    """Key, key of EVALUATED, size, places of the classes, their p-values: a map repeats its names.

    >>> class One: project, node_key, size = "payments", "i:7", 1
    >>> One.classes, One.p_values = '["b"]', "[0.05, 0.4]"
    >>> _row(One, {"a": 0, "b": 1})
    [7, 'payments/i:7', 1, [1], [0.4]]
    """
    p, own = json.loads(one.p_values), [places[name] for name in json.loads(one.classes)]
    key = one.node_key
    return [decode_key(key), f"{one.project}/{key}", one.size, own, [p[at] for at in own]]


def _fenced(graph: Graph, held: Lease, work: Callable[[ManagedTransaction], T]) -> T:
    def fenced(tx: ManagedTransaction) -> T:
        if tx.run(FENCE, project=held.project, token=held.token).single() is None:
            raise LeaseLost(
                found=f"another process has written for project {held.project!r} since",
                needed="the newest lease token; nothing of this transaction was written",
                next_step="nothing: the other process goes on with the work",
            )
        return work(tx)

    return graph.write(fenced, timeout_seconds=held.seconds)


def _moment(ns: int) -> datetime:
    return datetime.fromtimestamp(ns / NANOSECONDS, UTC)
