"""What the graph shows against what SQL decided, prediction by prediction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Row, select

from ringfence.connector import runs
from ringfence.connector.graph import Graph
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.models import manifest_of
from ringfence.connector.projection import run_id
from ringfence.connector.quoting import quote
from ringfence.connector.store import Store
from ringfence.connector.tables import run

Kind = Literal["node gone", "not projected", "set differs", "stray"]
KINDS: dict[Kind, str] = {
    "node gone": "evaluated, but no longer in the graph",
    "not projected": "in SQL, but the node lacks its EVALUATED relationship",
    "set differs": "the node's MAY_BE relationships are not those that were decided",
    "stray": "EVALUATED in the graph without a prediction in SQL",
}

SHOWN = """
MATCH (n)-[e:EVALUATED]->(:RingfenceRun {{id: $run}}) WHERE e.key > $after
WITH n, e ORDER BY e.key LIMIT $rows
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass {{project: $project}})
RETURN e.key AS evaluated, e.size AS size, n.{key} AS key,
       collect([c.name, m.p]) AS set ORDER BY evaluated
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One node for which the two stores don't say the same."""

    kind: Kind
    seq: int
    node_key: str


def differences(
    store: Store, graph: Graph, mapping: GraphMapping, project: str, rows: int = 2_000
) -> Iterator[Difference]:
    """Yield every difference, run by run; both sides are read in blocks."""
    for seq, model in _applied(store, project):
        classes = json.loads(manifest_of(store, project, model))["classes"]
        shown = _shown(graph, mapping, project, seq, rows)
        for block in runs.payload(store, project, seq, rows):
            here = {one.node_key for one in block} & set(shown)
            absent = [one.node_key for one in block if one.node_key not in here]
            gone = _gone(graph, mapping, absent)
            for one in block:
                kind = _judge(one, classes, shown.pop(one.node_key, None), one.node_key in gone)
                if kind is not None:
                    yield Difference(kind, seq, one.node_key)
        for stray in shown:
            yield Difference("stray", seq, stray)


def _judge(
    one: Row[Any], classes: Sequence[str], shown: tuple[int, dict[str, float]] | None, gone: bool
) -> Kind | None:
    if gone:
        return "node gone" if one.in_graph else None
    if shown is None:
        return "not projected"
    p = dict(zip(classes, json.loads(one.p_values), strict=True))
    decided = {name: p[name] for name in json.loads(one.classes)}
    return None if shown == (one.size, decided) else "set differs"


def _applied(store: Store, project: str) -> list[tuple[int, str]]:
    with store.reading() as connection:
        found = connection.execute(
            select(run.c.seq, run.c.model)
            .where(run.c.project == project, run.c.state == "applied")
            .order_by(run.c.seq)
        )
        return [(int(row.seq), str(row.model)) for row in found]


def _shown(
    graph: Graph, mapping: GraphMapping, project: str, seq: int, rows: int
) -> dict[str, tuple[int, dict[str, float]]]:
    """Size and set of every node that the graph shows for a run, by typed key."""
    query = SHOWN.format(key=quote(mapping.key))
    found: dict[str, tuple[int, dict[str, float]]] = {}
    after, prefix = "", f"{project}/"
    while True:
        block = graph.read(query, run=run_id(project, seq), project=project, after=after, rows=rows)
        for row in block:
            typed = str(row["evaluated"]).removeprefix(prefix)
            if row["key"] is None or encode_key(row["key"]) != typed:
                typed = f"{typed} (on another node)"  # a key that was changed after the evaluation
            found[typed] = row["size"], {name: p for name, p in row["set"] if name is not None}
        if len(block) < rows:
            return found
        after = str(block[-1]["evaluated"])


def _gone(graph: Graph, mapping: GraphMapping, keys: Sequence[str]) -> set[str]:
    if not keys:
        return set()
    key = quote(mapping.key)
    rows = graph.read(
        f"UNWIND $keys AS key MATCH (n:{quote(mapping.label)} {{{key}: key}}) "
        f"RETURN n.{key} AS key",
        keys=[decode_key(one) for one in keys],
    )
    return set(keys) - {encode_key(row["key"]) for row in rows}
