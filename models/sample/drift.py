"""Library only: graphs that grow run by run while the features of their classes drift.

Relationships join nodes of the same class more often and do not depend on the order of arrival: a
new node has those to nodes that are there (or, with `edge_order`, edges come in random order and
nodes with them). Features are those of a node's class, which move towards those of another class:
not at all (nodes are then exchangeable), gradually, in one break, or with a season. With message
passing a change reaches nodes through their neighbours too. Used by `benchmarks.drift` and by the
statistical tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.sample.block_model import degree_weights, draw_edges

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Drift = Literal["none", "gradual", "sudden", "seasonal"]

NEVER = np.iinfo(np.int64).max
"""Run at which a class that stays unknown becomes known."""

LARGEST_SHIFT = {"none": 0.0, "gradual": 0.6, "sudden": 0.5, "seasonal": 0.7}


@dataclass(frozen=True, slots=True)
class DriftingGraph:
    """Nodes in the order of arrival, with the run that finds each one (0: there at training).

    x: features [n, width]; y: classes [n]; edges: [2, e]; arrives: run that evaluates the node [n];
    known: run from which on its class is known [n]; edge_runs: run that finds each edge [e], None
    where an edge is there as soon as both ends are.
    """

    x: Floats
    y: Ints
    edges: Ints
    arrives: Ints
    known: Ints
    edge_runs: Ints | None = None

    def size_at(self, run: int) -> int:
        """Return how many nodes are there at a run."""
        return int(np.searchsorted(self.arrives, run, side="right"))

    def edges_at(self, run: int) -> Ints:
        """Return the edges that are there at a run."""
        if self.edge_runs is not None:
            return self.edges[:, self.edge_runs <= run]
        return self.edges[:, self.edges.max(axis=0) < self.size_at(run)]


def drifting_graph(
    rng: np.random.Generator,
    drift: Drift,
    *,
    start: int = 1_200,
    runs: int = 40,
    per_run: int = 70,
    classes: int = 4,
    width: int = 16,
    links: int = 4,
    homophily: float = 0.6,
    delay: int = 2,
    known_share: float = 0.7,
    rare: float | None = None,
    edge_order: bool = False,
) -> DriftingGraph:
    """Draw a graph; with `rare`, the last class has this share of the nodes.

    With `edge_order`, edges come in random order and a node arrives with its first one: edges are
    exchangeable and nodes are not. A third of the edges is there at the start.

    >>> graph = drifting_graph(np.random.default_rng(1), "none", start=50, runs=2, per_run=10)
    >>> graph.size_at(0), graph.size_at(2), len(graph.y)
    (50, 70, 70)
    """
    n = start + runs * per_run
    arrives = np.concatenate([np.zeros(start, np.int64), np.repeat(np.arange(runs) + 1, per_run)])
    shares = np.full(classes, 1.0 / classes)
    if rare is not None:
        shares = np.append(np.full(classes - 1, (1.0 - rare) / (classes - 1)), rare)
    y = rng.choice(classes, n, p=shares).astype(np.int64)
    edges, edge_runs = _edges(rng, y, links, homophily), None
    if edge_order:
        y, arrives, edges, edge_runs = _in_edge_order(rng, y, links, homophily, runs)
        n = len(y)
    centres = rng.normal(0.0, 1.2 / math.sqrt(width), (classes, width)) * math.sqrt(2.0)
    moved = shift_at(drift, arrives, runs)[:, None]
    towards = centres[(y + 1) % classes]
    x = (1.0 - moved) * centres[y] + moved * towards + rng.normal(0.0, 1.0, (n, width))
    known = np.where(rng.random(n) < known_share, arrives + delay, NEVER)
    known = np.where(arrives == 0, 0, known)
    return DriftingGraph(x, y, edges, arrives, known, edge_runs)


def shift_at(drift: Drift, arrives: Ints, runs: int) -> Floats:
    """Return how far features have moved towards the next class at each node's arrival."""
    t = np.maximum(arrives, 0) / max(runs, 1)
    shapes = {
        "none": 0.0 * t,
        "gradual": t,
        "sudden": (t > 0.35).astype(np.float64),
        "seasonal": np.sin(2.0 * np.pi * t) ** 2,
    }
    return np.asarray(LARGEST_SHIFT[drift] * shapes[drift])


def _edges(rng: np.random.Generator, y: Ints, links: int, homophily: float) -> Ints:
    """Pairs (later, earlier) independent of the order of arrival: nodes are exchangeable."""
    pairs = draw_edges(rng, y, np.ones(len(y)), links * len(y), homophily)
    return np.stack([pairs.max(axis=0), pairs.min(axis=0)])


def _in_edge_order(
    rng: np.random.Generator, y: Ints, links: int, homophily: float, runs: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Classes and arrivals of the nodes that have an edge, edges, and the run of each edge."""
    weights = degree_weights(rng, len(y), float(links), tail=3.0)
    edges = draw_edges(rng, y, weights, links * len(y) // 2, homophily)
    edges = edges[:, rng.permutation(edges.shape[1])]
    place = np.arange(edges.shape[1]) / edges.shape[1]
    edge_runs = np.maximum(0, np.ceil((place * 1.5 - 0.5) * runs)).astype(np.int64)
    arrives = np.full(len(y), runs + 1)
    for end in edges:
        np.minimum.at(arrives, end, edge_runs)
    order = np.argsort(arrives, kind="stable")[: np.count_nonzero(arrives <= runs)]
    renamed = np.empty(len(y), np.int64)
    renamed[order] = np.arange(len(order))
    return y[order], arrives[order], renamed[edges], edge_runs
