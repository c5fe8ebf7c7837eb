"""A Neo4j of its own for a benchmark, filled with the sample graph."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.neo4j.embedded import ServerOptions
from ringfence.connector.neo4j.migrate import create_user_indexes
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING, batches, load
from ringfence.models.sample.accounts import SampleGraph, sample_graph

FEATURES = 64
#: A server that stays up: memory for a million nodes, Java compiled in full.
SERVER = ServerOptions(heap="2g", page_cache="2g", quick=False)


@contextmanager
def running(options: ServerOptions | None = None) -> Iterator[tuple[Graph, str]]:
    """Yield a connected, empty graph and its password."""
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded.running(Path(folder), options=options) as server,
    ):
        graph = connect(server.uri, server.user, server.password)
        try:
            yield graph, server.password
        finally:
            graph.close()


def filled(
    graph: Graph, nodes: int, later: int = 0, degree: float = 10.0
) -> tuple[SampleGraph, list]:
    """Load `nodes` of a sample, half of known class; return it and the batches still to come."""
    sample = sample_graph(nodes + later, seed=1, features=FEATURES, mean_degree=degree)
    first, *rest = batches(sample, [nodes] + ([1_000] * (later // 1_000)))
    create_user_indexes(graph, SAMPLE_MAPPING)
    known = np.random.default_rng(0).random(sample.nodes) < 0.5
    load(graph, sample, first, known, lambda *_: None)
    return sample, rest
