"""The sample graph in Neo4j: payment accounts, loaded whole or as batches that keep arriving."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.migrate import create_user_indexes
from ringfence.connector.neo4j.read.watermark import count_nodes
from ringfence.connector.neo4j.write.bulk import (
    create_nodes,
    create_relationships,
    set_classes,
)
from ringfence.connector.progress import Progress
from ringfence.models.sample.accounts import DAY_NS, Arrival, SampleGraph, sample_graph

SAMPLE_MAPPING = map_one_label(
    label="Account",
    key="id",
    features="features",
    class_property="kind",
    created_at="created_at",
    time_kind="zoned",
    relations=(RelationMapping(0, "PAID", 0, created_at="created_at"),),
)

REGIONS = ("north", "south", "east", "west")
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes and edges (as rows of the sample) that arrive together."""

    nodes: Rows
    edges: Rows


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What `ringfence sample` loaded."""

    nodes: int
    relationships: int
    labelled: int


def run_sample(
    graph: Graph, nodes: int, arrival: str, labelled: float, seed: int, progress: Progress
) -> SampleReport:
    """Load a whole sample graph whose last node arrived just now."""
    if arrival not in {"node", "edge"}:
        raise ConfigError(found=f"--arrival {arrival}", needed="node or edge")
    if count_nodes(graph, SAMPLE_MAPPING):
        raise GraphError(
            found="the graph has :Account nodes already",
            needed="a database without them; the sample would mix with yours",
        )
    span_ns = 30 * DAY_NS
    kind: Arrival = "node" if arrival == "node" else "edge"
    sample = sample_graph(
        nodes, seed=seed, arrival=kind, start_ns=time.time_ns() - span_ns, span_ns=span_ns
    )
    known = np.random.default_rng(seed).random(nodes) < labelled
    create_user_indexes(graph, SAMPLE_MAPPING)
    (batch,) = batches(sample, [nodes])
    load(graph, sample, batch, known, progress, own_times=True)
    return SampleReport(len(batch.nodes), len(batch.edges), int(known[batch.nodes].sum()))


def batches(sample: SampleGraph, sizes: list[int]) -> Iterator[Batch]:
    """Yield the sample in its order of arrival, `sizes` nodes at a time."""
    nodes = np.flatnonzero(sample.arrived)
    order = nodes[np.argsort(sample.node_time[nodes], kind="stable")]
    rank = np.full(sample.nodes, sample.nodes)
    rank[order] = np.arange(len(order))
    edge_rank = rank[sample.edges].max(axis=0)
    start = 0
    for size in sizes:
        stop = min(start + size, len(order))
        yield Batch(order[start:stop], np.flatnonzero((edge_rank >= start) & (edge_rank < stop)))
        start = stop


def load(
    graph: Graph,
    sample: SampleGraph,
    batch: Batch,
    labelled: NDArray[np.bool_],
    progress: Progress,
    *,
    own_times: bool = False,
) -> None:
    """Write a batch; `labelled` says whose class is known, bool over all nodes of the sample.

    With `own_times` nodes carry the sample's times, otherwise the server stamps them on arrival.
    """
    names = [sample.classes[y] if labelled[i] else None for i, y in enumerate(sample.y.tolist())]
    create_nodes(
        graph,
        SAMPLE_MAPPING,
        batch.nodes.tolist(),
        sample.features[batch.nodes],
        [names[i] for i in batch.nodes.tolist()],
        sample.node_time[batch.nodes].tolist() if own_times else None,
        [{"region": REGIONS[i % len(REGIONS)]} for i in batch.nodes.tolist()],
        progress,
    )
    sources, targets = sample.edges[:, batch.edges].tolist()
    times = sample.edge_time[batch.edges].tolist() if own_times else None
    create_relationships(graph, SAMPLE_MAPPING, sources, targets, times, progress)


def reveal(graph: Graph, sample: SampleGraph, nodes: Rows) -> None:
    """Make the classes of `nodes` known."""
    classes = [sample.classes[y] for y in sample.y[nodes].tolist()]
    set_classes(graph, SAMPLE_MAPPING, nodes.tolist(), classes)


def sample_toml(uri: str, project: str, rule: str = "NodeEx", groups: Sequence[str] = ()) -> str:
    """Return a configuration that fits the sample graph; coverage is counted by `groups` too."""
    by = f"groups = {json.dumps(list(groups))}\n" if groups else ""
    return f"""# A configuration for ringfence's sample graph; every setting: docs/configuration.md
project = "{project}"

[neo4j]
uri = "{uri}"

[audit]
url = "sqlite:///.ringfence/audit.db"
{by}
[graph]
label = "Account"
key = "id"
features = "features"
class_property = "kind"
created_at = "created_at"
time_kind = "zoned"

[[graph.relationships]]
type = "PAID"
undirected = true
created_at = "created_at"

[model]
learning_rate = 0.01
weight_decay = 0.001

[conformal]
alpha = 0.1
rule = "{rule}"
"""
