"""Which rule does the order of arrival support? Asked now and then, since the answer moves slowly.

The advisor wants every edge with its time. A graph with more than `MAX_RELATIONSHIPS` is not read
for it at every audit: the opinion that stands is kept, and says when it was formed.
"""

from __future__ import annotations

import numpy as np

from ringfence.connector.neo4j.arrivals import MIN_EDGES, MIN_NODES, read_arrivals
from ringfence.connector.neo4j.read.watermark import count_nodes, count_relationships
from ringfence.connector.store import coverage, runs
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.exchangeability.advisor import advise

MAX_RELATIONSHIPS = 300_000
GROWTH = 1.1  # ask again when the graph has grown by a tenth


def advise_now_and_then(workspace: Workspace, writer: Writer) -> None:
    """Form an opinion where there is none yet or the graph has grown by a tenth since."""
    mark = coverage.mark_of(workspace.store, workspace.project)
    nodes = count_nodes(workspace.graph, workspace.mapping)
    if mark is not None and mark.advice and nodes < GROWTH * mark.advice["nodes"]:
        return
    relationships = count_relationships(workspace.graph, workspace.mapping)
    if not MIN_EDGES <= relationships <= MAX_RELATIONSHIPS or nodes < MIN_NODES:
        return
    watermarks = np.array(runs.watermarks(workspace.store, workspace.project), np.int64)
    arrivals = read_arrivals(workspace.graph, workspace.mapping, watermarks)
    if arrivals is None:
        return
    opinion = advise(
        arrivals.node_time,
        arrivals.edges,
        arrivals.edge_time,
        seed=workspace.settings.model.seed,
    )
    advice = {
        "nodes": nodes,
        "rule": opinion.rule,
        "node_p": opinion.node_p,
        "edge_p": opinion.edge_p,
        "words": opinion.describe(),
    }
    coverage.set_mark(writer, advice=advice)
