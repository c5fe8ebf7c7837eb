"""Which rule does the order of arrival support? Asked now and then, since the answer moves slowly.

The advisor wants every edge with its time. A graph with more relationships than `MOST` is not read
for it at every turn: the opinion that stands is kept, and says when it was formed.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ringfence.connector import coverage
from ringfence.connector.graph import Graph
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.quoting import quote
from ringfence.connector.runs import Writer
from ringfence.connector.store import dumps
from ringfence.connector.times import ns_expression
from ringfence.connector.watermark import count_nodes, count_relationships
from ringfence.jobs.workspace import Workspace
from ringfence.models.advisor import advise

MOST = 300_000
GROWTH = 1.1  # ask again when the graph has grown by a tenth


def advise_now_and_then(workspace: Workspace, writer: Writer) -> None:
    """Form an opinion where there is none yet or the graph has grown by a tenth since."""
    mark = coverage.mark_of(workspace.store, workspace.project)
    nodes = count_nodes(workspace.graph, workspace.mapping)
    if mark is not None and mark.advice and nodes < GROWTH * json.loads(mark.advice)["nodes"]:
        return
    if not 2 <= count_relationships(workspace.graph, workspace.mapping) <= MOST or nodes < 3:
        return
    found = arrivals(workspace.graph, workspace.mapping)
    if found is None:
        return
    opinion = advise(**found, seed=workspace.settings.model.seed)
    body: dict[str, Any] = {
        "nodes": nodes,
        "rule": opinion.rule,
        "node_p": opinion.node_p,
        "edge_p": opinion.edge_p,
        "words": opinion.words(),
    }
    coverage.set_mark(writer, advice=dumps(body))


def arrivals(graph: Graph, mapping: GraphMapping) -> dict[str, Any] | None:
    """Read times of nodes and edges as `advise` takes them; None where there are too few."""
    label, key = quote(mapping.label), quote(mapping.key)
    created = f"n.{quote(mapping.created_at)}"
    nodes = graph.read(
        f"MATCH (n:{label}) WHERE {created} IS NOT NULL AND n.{key} IS NOT NULL "
        f"RETURN collect(elementId(n)) AS ids, "
        f"collect({ns_expression(mapping.time_kind, created)}) AS times"
    )[0]
    rows = {id_: row for row, id_ in enumerate(nodes["ids"])}
    times = np.array(nodes["times"], np.int64)
    ends: list[tuple[int, int]] = []
    when: list[int] = []
    for kind in mapping.relationships:
        stamp = f"r.{quote(kind.created_at)}" if kind.created_at else "null"
        at = f"{ns_expression(mapping.time_kind, stamp)}" if kind.created_at else "null"
        found = graph.read(
            f"MATCH (a:{label})-[r:{quote(kind.type)}]->(b:{label}) WHERE a <> b "
            f"RETURN collect([elementId(a), elementId(b), CASE WHEN {stamp} IS NULL THEN null "
            f"ELSE {at} END]) AS edges"
        )[0]["edges"]
        for a, b, ns in found:
            if a in rows and b in rows:
                one, two = rows[a], rows[b]
                ends.append((min(one, two), max(one, two)))
                when.append(int(max(times[one], times[two]) if ns is None else ns))
    if len(ends) < 2 or len(times) < 3:
        return None
    pairs, moments = np.array(ends, np.int64), np.array(when, np.int64)
    order = np.lexsort((moments, pairs[:, 1], pairs[:, 0]))
    pairs, moments = pairs[order], moments[order]
    first = np.append(True, (pairs[1:] != pairs[:-1]).any(axis=1))  # a pair counts once, the oldest
    if first.sum() < 2:
        return None
    return {"node_time": times, "edges": pairs[first].T, "edge_time": moments[first]}
