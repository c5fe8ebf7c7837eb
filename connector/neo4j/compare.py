"""What the graph shows of a run: its sets, and which of its nodes are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.incarnation import PresentNode, belongs_to
from ringfence.connector.keys import decode_key, encode_key, typed_key_of
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.classes import EVALUATED_KEYS
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.times import checked_ns_expression
from ringfence.connector.neo4j.write.prediction_sets import run_id
from ringfence.connector.records import StoredPrediction

ON_ANOTHER_NODE = " (on another node)"  # after a key whose node got another key since

# Neo4j answers it from the index of keys, in their order, so a block does not expand its whole run:
# 100,000 nodes cost no more than in one stream (benchmarks/shown_sets.py).
SHOWN = """
MATCH (n)-[e:EVALUATED]->(:RingfenceRun {{id: $run}}) WHERE e.key > $after
WITH n, e ORDER BY e.key LIMIT $rows
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass {{project: $project}})
RETURN e.key AS evaluated, e.size AS size, e.alpha AS alpha, e.level AS level, e.band AS band,
       e.sampled AS sampled, e.lists AS lists, n.{key} AS key,
       collect([c.name, m.p, m.in_set]) AS set
ORDER BY evaluated
"""

PRESENT = """
UNWIND $keys AS key
MATCH (n:{label} {{{key}: key}})
WITH n, {created} AS t
RETURN n.{key} AS key, {ns} AS created, {evaluated} AS evaluated
"""

EVALUATED_BEFORE = """
UNWIND $keys AS key
MATCH (n:{label} {{{key}: key}})-[e:EVALUATED]->(:RingfenceRun {{project: $project}})
RETURN n.{key} AS key, max(e.key) AS evaluated
"""


ShownClass = tuple[str, float, bool | None]
"""Name of a class, its p, and whether it is in the set (absent in sets of older versions)."""


@dataclass(frozen=True, slots=True)
class ShownSet:
    """A node's set as its relationships show it.

    Size, alpha, level, band and `sampled` (True, or not there) stand on EVALUATED, and the
    `lists` that the node is on (none: not there); `classes` are name, p and whether it is in the
    set, `ordered`: someone may have given one class two.
    """

    size: int
    alpha: float
    level: float | None
    band: str | None
    sampled: bool | None
    lists: Any
    classes: tuple[ShownClass, ...]


def ordered(classes: Sequence[ShownClass]) -> tuple[ShownClass, ...]:
    """Return classes in an order that works for values of any type, since they may be edited."""
    return tuple(sorted(classes, key=repr))


def read_shown_sets(
    graph: Graph, mapping: GraphMapping, project: str, seq: int, rows: int
) -> dict[str, ShownSet]:
    """Return the set of every node that the graph shows for a run, by record's key.

    The graph is read in blocks of `rows`. Where a node's key is not the one that it was evaluated
    under, ON_ANOTHER_NODE stands after the latter.
    """
    query = SHOWN.format(key=quote(mapping.classified.key))
    shown: dict[str, ShownSet] = {}
    after, prefix = "", f"{project}/"
    while True:
        block = graph.read(query, run=run_id(project, seq), project=project, after=after, rows=rows)
        for row in block:
            record_key = str(row["evaluated"]).removeprefix(prefix)
            if row["key"] is None or encode_key(row["key"]) != typed_key_of(record_key):
                record_key = f"{record_key}{ON_ANOTHER_NODE}"
            classes = [tuple(pair) for pair in row["set"] if pair[0] is not None]
            names = "size", "alpha", "level", "band", "sampled", "lists"
            values = {name: row[name] for name in names}
            shown[record_key] = ShownSet(**values, classes=ordered(classes))
        if len(block) < rows:
            return shown
        after = str(block[-1]["evaluated"])


def find_gone(graph: Graph, mapping: GraphMapping, stored: Sequence[StoredPrediction]) -> set[str]:
    """Return the record's keys of predictions whose node is not in the graph any more.

    A node that has the key of one now may be another (`connector.incarnation`).
    """
    if not stored:
        return set()
    node = mapping.classified
    query = PRESENT.format(
        label=quote(node.label),
        key=quote(node.key),
        created=f"n.{quote(node.created_at)}" if node.created_at else "null",
        ns=checked_ns_expression(mapping.time_kind, "t"),
        evaluated=EVALUATED_KEYS,
    )
    project = stored[0].project
    keys = dict.fromkeys(decode_key(prediction.node_key) for prediction in stored)
    rows = graph.read(query, keys=list(keys), project=project)
    present = {
        encode_key(row["key"]): PresentNode(row["created"], row["evaluated"]) for row in rows
    }
    return {
        prediction.node_key
        for prediction in stored
        if (now := present.get(typed_key_of(prediction.node_key))) is None
        or not belongs_to(prediction, now, project, node.created_at is not None)
    }


def find_evaluated(
    graph: Graph, mapping: GraphMapping, project: str, keys: Sequence[str]
) -> dict[str, str]:
    """Return under which record's key nodes were evaluated in a run of the project, by typed key.

    Another key than the node's own: it has changed since. Nodes without EVALUATED are left out.
    """
    query = EVALUATED_BEFORE.format(
        label=quote(mapping.classified.label), key=quote(mapping.classified.key)
    )
    rows = graph.read(query, keys=[decode_key(key) for key in keys], project=project)
    prefix = f"{project}/"
    return {
        encode_key(row["key"]): str(row["evaluated"] or "").removeprefix(prefix) for row in rows
    }
