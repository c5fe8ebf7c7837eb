"""What stands in the graph: a projection of what SQL decided; writing it again is harmless.

Every transaction first shows its lease token to the project's fence node: a process that slept
through its lease carries a smaller token than its successor and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
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

# The class nodes are looked up once per block, not once per relationship; which of a node's
# relationships stand already is asked once per node. What stands is left as it is.
SETS = """
MATCH (run:RingfenceRun {{id: $run}})
UNWIND $names AS name
MATCH (c:RingfenceClass {{project: $project, name: name}})
WITH run, collect(c) AS classes
UNWIND $rows AS row
MATCH (n:{label} {{{key}: row.key}})
MERGE (n)-[e:EVALUATED {{key: row.evaluated}}]->(run)
ON CREATE SET e.size = row.size, e.alpha = $alpha
WITH n, row, classes, [(n)-[:MAY_BE]->(c) | c] AS there
CALL (n, row, classes, there) {{
  UNWIND range(0, row.size - 1) AS i
  WITH n, classes[row.places[i]] AS c, row.p[i] AS p, there
  WHERE NOT c IN there
  CREATE (n)-[:MAY_BE {{p: p}}]->(c)
}}
RETURN collect(row.evaluated) AS evaluated
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
MATCH (n:{label} {{{key}: row.key}})
OPTIONAL MATCH (n)-[m:MAY_BE]->(:RingfenceClass {{project: $project}})
DELETE m
WITH DISTINCT n, row
OPTIONAL MATCH (n)-[e:EVALUATED {{key: row.evaluated}}]->()
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


def write_sets(
    graph: Graph,
    held: Lease,
    mapping: GraphMapping,
    row: Row[Any],
    classes: Sequence[str],
    block: Iterable[Row[Any]],
) -> list[str]:
    """Write a block of sets in one transaction; return the keys whose node is no longer there."""
    sets = [_set(one, classes) for one in block]
    query = SETS.format(label=quote(mapping.label), key=quote(mapping.key))

    def work(tx: ManagedTransaction) -> set[str]:
        result = tx.run(
            query,
            run=run_id(row.project, row.seq),
            rows=sets,
            names=list(classes),
            project=row.project,
            alpha=row.alpha,
        )
        written = {key for record in result for key in record["evaluated"]}
        checkpoints.at("inside block")
        return written

    written = _fenced(graph, held, work)
    return [one["typed"] for one in sets if one["evaluated"] not in written]


def mend_sets(
    graph: Graph,
    held: Lease,
    mapping: GraphMapping,
    row: Row[Any],
    classes: Sequence[str],
    block: Sequence[Row[Any]],
) -> None:
    """Replace damaged projections of a run's predictions by what SQL decided."""
    query = MEND.format(label=quote(mapping.label), key=quote(mapping.key))
    sets = [_set(one, classes) for one in block]
    _fenced(graph, held, lambda tx: tx.run(query, rows=sets, project=row.project).consume())
    write_sets(graph, held, mapping, row, classes, block)


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


def _set(one: Row[Any], classes: Sequence[str]) -> dict[str, Any]:
    p, places = json.loads(one.p_values), [classes.index(name) for name in json.loads(one.classes)]
    return {
        "typed": one.node_key,
        "key": decode_key(one.node_key),
        "evaluated": f"{one.project}/{one.node_key}",
        "size": one.size,
        "places": places,
        "p": [p[place] for place in places],
    }


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
