"""Coverage rows as (:CoverageAudit) nodes: exactly what SQL holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ringfence.connector.neo4j.bolt import ManagedTransaction
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.times import datetime_of
from ringfence.connector.neo4j.write.fence import write_fenced
from ringfence.connector.neo4j.write.prediction_sets import run_id
from ringfence.connector.records import StoredCoverage

if TYPE_CHECKING:
    from ringfence.connector.store.lease import Lease

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


def write_coverage(graph: Graph, held: Lease, stored: Sequence[StoredCoverage]) -> None:
    """Make the (:CoverageAudit) nodes equal to what SQL holds.

    Late classes change rows, and some rows move to a later run. The graph is read first: an earlier
    audit may have died between the two stores.
    """
    shown_rows = graph.read(COVERAGE_SHOWN, project=held.project)
    shown = {row["id"]: _native(row["at"]) for row in shown_rows}
    rows = {coverage_id(row): row for row in stored}
    values = [
        {"id": id_, "run": run_id(row.project, row.seq), "facts": coverage_properties(row)}
        for id_, row in rows.items()
        if shown.get(id_) != datetime_of(row.audited_ns)
    ]
    gone = sorted(shown.keys() - rows.keys())

    def work(tx: ManagedTransaction) -> None:
        tx.run(COVERAGE, rows=values).consume()
        tx.run(COVERAGE_GONE, ids=gone).consume()

    write_fenced(graph, held, work)


def _native(value: Any) -> Any:
    """A time as Python has it; any other value that someone wrote there is returned unchanged."""
    return value.to_native() if hasattr(value, "to_native") else value


def coverage_properties(row: StoredCoverage) -> dict[str, Any]:
    """Return the properties of a coverage row's node except its id; None is an absent one."""
    facts = asdict(row)
    return {**facts, "at": datetime_of(facts.pop("audited_ns"))}


def coverage_id(row: StoredCoverage) -> str:
    """Return the id of a coverage row's node.

    The alpha stands in the id of the rows at a run's further alphas alone; the first one's rows
    keep their original ids.
    """
    name = f"/{row.name}" if row.name else ""
    at = "" if row.first_alpha else f"/alpha {row.alpha:g}"
    return f"{run_id(row.project, row.seq)}/{row.slice}{name}{at}"
