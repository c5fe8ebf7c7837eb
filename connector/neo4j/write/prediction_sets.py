"""The projection of SQL's decisions into the graph; writing it again is idempotent.

Every transaction passes the project's fence first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringfence.connector import fault_points
from ringfence.connector.keys import decode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.bolt import ManagedTransaction
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.times import checked_ns_expression, datetime_of
from ringfence.connector.neo4j.write.fence import write_fenced
from ringfence.connector.records import Prediction, Run, StoredPrediction

if TYPE_CHECKING:
    from ringfence.connector.store.lease import Lease

RUN = """
MERGE (r:RingfenceRun {id: $id})
ON CREATE SET r += $facts
WITH r UNWIND $classes AS name
MERGE (:RingfenceClass {project: $project, name: name})
"""

HAS_RUN = "MATCH (r:RingfenceRun {id: $id}) RETURN r.seq AS seq"

# Ids are unique and so indexed: a seek per run, a millisecond for hundreds of them.
MISSING_RUNS = """
UNWIND $ids AS id
OPTIONAL MATCH (r:RingfenceRun {id: id})
WITH id, r WHERE r IS NULL
RETURN id
"""

# One read of a node's relationships tells what stands already; it is left as it is, and only what
# is missing is created. A MERGE per node costs as much as everything else in this query. A class
# node that someone deleted meanwhile comes back: without it all places after it would be shifted.
SETS = """
MATCH (run:RingfenceRun {{id: $run}})
UNWIND $names AS name
MERGE (c:RingfenceClass {{project: $project, name: name}})
WITH run, collect(c) AS classes
UNWIND $rows AS row
MATCH (n:{label} {{{key}: row[0]}})
WITH run, classes, n, row, {created} AS t,
  [(n)-[r:EVALUATED|MAY_BE]->(other) WHERE r:MAY_BE OR r.key = row[1] | other] AS there
WITH run, classes, n, row, there WHERE NOT $checked OR run IN there OR {same}
FOREACH (to IN [to IN [run] WHERE NOT to IN there] |
  CREATE (n)-[:EVALUATED {{
    key: row[1], size: row[2], alpha: $alpha, level: $level, band: row[6],
    sampled: row[8], lists: row[9]}}]->(to))
FOREACH (i IN range(0, size(row[3]) - 1) |
  FOREACH (to IN [to IN [classes[row[3][i]]] WHERE NOT to IN there] |
    CREATE (n)-[:MAY_BE {{p: row[4][i], in_set: row[5][i]}}]->(to)))
RETURN collect(row[1]) AS evaluated
"""

# What belongs to a node by its EVALUATED is known only until that is removed.
REMOVE_SETS = """
UNWIND $rows AS row
MATCH (n:{label} {{{key}: row[0]}})
WITH n, row, {created} AS t
WITH n, row WHERE EXISTS {{ (n)-[:EVALUATED {{key: row[1]}}]->() }} OR {same}
OPTIONAL MATCH (n)-[m:MAY_BE]->(:RingfenceClass {{project: $project}})
DELETE m
WITH DISTINCT n, row
OPTIONAL MATCH (n)-[e:EVALUATED {{key: row[1]}}]->()
DELETE e
RETURN collect(DISTINCT row[1]) AS removed
"""

# A row without a sealed time, or a graph without creation times: nothing contradicts.
IS_SAME = "(row[7] IS NULL OR coalesce({ns} = row[7], false))"

REMOVE_ORPHANED = """
UNWIND $keys AS key
MATCH (n)-[e:EVALUATED {key: key}]->()
DELETE e
WITH n OPTIONAL MATCH (n)-[m:MAY_BE]->(:RingfenceClass {project: $project})
DELETE m
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
    return bool(graph.read(HAS_RUN, id=run_id(project, seq)))


def missing_runs(graph: Graph, project: str, seqs: Sequence[int]) -> list[int]:
    """Return those of the runs that the graph does not show."""
    by_id = {run_id(project, seq): seq for seq in seqs}
    return sorted(by_id[row["id"]] for row in graph.read(MISSING_RUNS, ids=list(by_id)))


def write_run(graph: Graph, held: Lease, run: Run, classes: Sequence[str]) -> None:
    """Create the run's node and the class nodes that its sets will point to."""
    write_fenced(
        graph,
        held,
        lambda tx: tx.run(
            RUN,
            id=run_id(run.project, run.seq),
            facts=run_properties(run),
            classes=list(classes),
            project=run.project,
        ).consume(),
    )


def run_properties(run: Run) -> dict[str, Any]:
    """Return the properties of a run's node except its id; None is an absent one."""
    return {
        "project": run.project,
        "seq": run.seq,
        "at": datetime_of(run.decided_ns),
        "rule": run.rule,
        "alpha": run.alpha,
        "threshold": run.threshold,
        "level": run.level,
        "promise": run.promise,
        "calibration": run.n_calibration,
        "model": run.model,
    }


def prepare_sets(
    block: Sequence[StoredPrediction], classes: Sequence[str], lowest_level: float | None = None
) -> PreparedSets:
    """Return a block of stored predictions as Neo4j takes it; needs neither store nor graph.

    `lowest_level` is the run's: classes with a p-value above it are written, in the set or not.
    """
    return PreparedSets(
        [stored.node_key for stored in block],
        [_row(stored, classes, lowest_level) for stored in block],
        list(classes),
    )


def shown_places(
    stored: Prediction, classes: Sequence[str], lowest_level: float | None
) -> list[int]:
    """Return the places of the classes that the graph shows of a prediction, by place.

    Those in the set, and those with a p-value above the lowest level that the run used.
    """
    inside = set(stored.classes)
    return [
        place
        for place, (name, p) in enumerate(zip(classes, stored.p_values, strict=True))
        if name in inside or (lowest_level is not None and p > lowest_level)
    ]


def write_sets(
    graph: Graph, held: Lease, mapping: GraphMapping, run: Run, sets: PreparedSets
) -> list[str]:
    """Write a block of sets in one transaction; return the keys whose node is no longer there.

    A node that has a key now and was created at another time than the one on record is another.
    """

    def work(tx: ManagedTransaction) -> set[str]:
        written = _create_sets(tx, mapping, run, sets.classes, sets.rows, checked=True)
        fault_points.reach("inside block")
        return written

    written = write_fenced(graph, held, work)
    return [key for key, row in zip(sets.keys, sets.rows, strict=True) if row[1] not in written]


def _create_sets(
    tx: ManagedTransaction,
    mapping: GraphMapping,
    run: Run,
    classes: list[str],
    rows: Sequence[list[Any]],
    *,
    checked: bool,
) -> set[str]:
    """Create what is missing of some sets; return the keys of EVALUATED that stand then."""
    result = tx.run(
        SETS.format(**_names(mapping)),
        run=run_id(run.project, run.seq),
        rows=rows,
        names=classes,
        project=run.project,
        alpha=run.alpha,
        level=run.level,
        checked=checked,
    )
    return {key for record in result for key in record["evaluated"]}


def _names(mapping: GraphMapping) -> dict[str, str]:
    """What the queries name: label, key, and how a node's creation time is compared."""
    node = mapping.classified
    ns = checked_ns_expression(mapping.time_kind, "t")
    return {
        "label": quote(node.label),
        "key": quote(node.key),
        "created": f"n.{quote(node.created_at)}" if node.created_at else "null",
        "same": IS_SAME.format(ns=ns) if node.created_at else "true",
    }


def repair_sets(
    graph: Graph, held: Lease, mapping: GraphMapping, run: Run, sets: PreparedSets
) -> None:
    """Replace damaged projections of a run's predictions by what SQL decided.

    Nodes that are not those on record are left as they are.
    """
    query = REMOVE_SETS.format(**_names(mapping))

    def work(tx: ManagedTransaction) -> None:
        result = tx.run(query, rows=sets.rows, project=run.project)
        removed = {key for record in result for key in record["removed"]}
        rows = [row for row in sets.rows if row[1] in removed]
        _create_sets(tx, mapping, run, sets.classes, rows, checked=False)

    write_fenced(graph, held, work)


def remove_orphaned(graph: Graph, held: Lease, keys: Sequence[str]) -> None:
    """Remove EVALUATED relationships that have no prediction in SQL."""
    values = [f"{held.project}/{key}" for key in keys]
    write_fenced(
        graph,
        held,
        lambda tx: tx.run(REMOVE_ORPHANED, keys=values, project=held.project).consume(),
    )


def _row(stored: StoredPrediction, classes: Sequence[str], lowest_level: float | None) -> list[Any]:
    """Key, key of EVALUATED, size, then of the classes shown: places, p-values, in the set; band.

    Then the sealed creation time; true for a node of the audit sample; the names of the lists that
    it is on. Without them the last two are no property. A list, since a map repeats its names.

    >>> from types import SimpleNamespace
    >>> decided = {"size": 1, "classes": ("b",), "p_values": (0.07, 0.4, 0.01), "band": "2-4"}
    >>> node = {"node_key": "1@i:7", "created_ns": 5, "sampled": False, "lists": {"clear": 0.004}}
    >>> stored = SimpleNamespace(project="payments", **node, **decided)
    >>> _row(stored, ("a", "b", "c"), lowest_level=0.05)
    [7, 'payments/1@i:7', 1, [0, 1], [0.07, 0.4], [False, True], '2-4', 5, None, ['clear']]
    """
    key, shown = stored.node_key, shown_places(stored, classes, lowest_level)
    p_values = [stored.p_values[place] for place in shown]
    inside = [classes[place] in stored.classes for place in shown]
    evaluated = f"{stored.project}/{key}"
    values = shown, p_values, inside, stored.band, stored.created_ns, stored.sampled or None
    return [decode_key(key), evaluated, stored.size, *values, sorted(stored.lists) or None]
