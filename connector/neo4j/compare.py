"""What the graph shows of a run: its sets, and which of its nodes are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.write.prediction_sets import run_id

ON_ANOTHER_NODE = " (on another node)"  # after a key whose node got another key since

# Neo4j answers it from the index of keys, in their order, so a block does not expand its whole run:
# 100,000 nodes cost no more than in one stream (benchmarks/shown_sets.py).
SHOWN = """
MATCH (n)-[e:EVALUATED]->(:RingfenceRun {{id: $run}}) WHERE e.key > $after
WITH n, e ORDER BY e.key LIMIT $rows
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass {{project: $project}})
RETURN e.key AS evaluated, e.size AS size, e.alpha AS alpha, e.level AS level, e.band AS band,
       n.{key} AS key, collect([c.name, m.p, m.in_set]) AS set ORDER BY evaluated
"""

PRESENT = """
UNWIND $keys AS key
MATCH (n:{label} {{{key}: key}})
RETURN n.{key} AS key
"""

EVALUATED_BEFORE = """
UNWIND $keys AS key
MATCH (n:{label} {{{key}: key}})-[:EVALUATED]->(:RingfenceRun {{project: $project}})
RETURN DISTINCT n.{key} AS key
"""


ShownClass = tuple[str, float, bool | None]
"""Name of a class, its p, and whether it is in the set (absent in sets of older versions)."""


@dataclass(frozen=True, slots=True)
class ShownSet:
    """A node's set as its relationships show it.

    Size, alpha, level and band stand on EVALUATED; `classes` are name, p and whether it is in the
    set, `ordered`: someone may have given one class two.
    """

    size: int
    alpha: float
    level: float | None
    band: str | None
    classes: tuple[ShownClass, ...]


def ordered(classes: Sequence[ShownClass]) -> tuple[ShownClass, ...]:
    """Return classes in an order that needs nothing of their types: values may be edited."""
    return tuple(sorted(classes, key=repr))


def read_shown_sets(
    graph: Graph, mapping: GraphMapping, project: str, seq: int, rows: int
) -> dict[str, ShownSet]:
    """Return the set of every node that the graph shows for a run, by typed key.

    The graph is read in blocks of `rows`. Where a node's key is not the one that it was evaluated
    under, ON_ANOTHER_NODE stands after the latter.
    """
    query = SHOWN.format(key=quote(mapping.key))
    shown: dict[str, ShownSet] = {}
    after, prefix = "", f"{project}/"
    while True:
        block = graph.read(query, run=run_id(project, seq), project=project, after=after, rows=rows)
        for row in block:
            typed_key = str(row["evaluated"]).removeprefix(prefix)
            if row["key"] is None or encode_key(row["key"]) != typed_key:
                typed_key = f"{typed_key}{ON_ANOTHER_NODE}"
            classes = [tuple(one) for one in row["set"] if one[0] is not None]
            values = row["size"], row["alpha"], row["level"], row["band"]
            shown[typed_key] = ShownSet(*values, ordered(classes))
        if len(block) < rows:
            return shown
        after = str(block[-1]["evaluated"])


def find_gone(graph: Graph, mapping: GraphMapping, keys: Sequence[str]) -> set[str]:
    """Return those typed keys for which there is no node any more."""
    if not keys:
        return set()
    query = PRESENT.format(label=quote(mapping.label), key=quote(mapping.key))
    rows = graph.read(query, keys=[decode_key(key) for key in keys])
    return set(keys) - {encode_key(row["key"]) for row in rows}


def find_evaluated(
    graph: Graph, mapping: GraphMapping, project: str, keys: Sequence[str]
) -> set[str]:
    """Return those typed keys whose node was evaluated in a run of the project, under any key."""
    query = EVALUATED_BEFORE.format(label=quote(mapping.label), key=quote(mapping.key))
    rows = graph.read(query, keys=[decode_key(key) for key in keys], project=project)
    return {encode_key(row["key"]) for row in rows}
