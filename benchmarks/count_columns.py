"""Counts of neighbours as columns: of the graph as it is now, or cut at each node's own time?

    python -m benchmarks.count_columns [--repetitions 400]

Mules are active: they have more relationships. A scorer learns from the number of neighbours alone,
on half of the labelled nodes of an early graph; the other half calibrates. The newest nodes are
judged on arrival, on the graph as it is then. Counts are those of that graph (`now`), or of
neighbours that are not later than the node itself (`cut`, as trees have them with `degrees`
where nodes have times). Beside them stand what trees count by default: relationships to context,
which come with their node (with the same delay where relationships come late), and, where there is
no context, none, so that the scorer hears nothing. Sets are TPS at 90 %, all nodes together
(NodeEx) or in bands of degree (auto). No network, no database: what differs between the rows is
which nodes are treated alike.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import keep, show
from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
)
from ringfence.models.rules.registry import rule_named

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Graph = tuple[Ints, Ints, Floats, Floats]
"""Classes [n], edges [2, E], when nodes and edges arrive."""
Context = tuple[Ints, Floats]
"""The node of each relationship to context, and when it arrives [m]."""

ALPHA, NODES, LABELLED_AT, NEWEST, ACTIVE = 0.1, 1_600, 0.5, 60, 2.5
EACH = 4  # relationships per node, about
MORE = np.linspace(0.4, 1.6, NODES)  # of them, by arrival, where later nodes bring more
WAYS, RULES = ("now", "cut", "context", "none"), ("NodeEx", "auto")


def nodes_in_random_order(rng: np.random.Generator) -> Graph:
    """Edges are drawn over all nodes and come with their later end: node-exchangeable."""
    y = rng.integers(0, 2, NODES)
    edges = _pairs(rng, y)
    time = rng.permutation(NODES).astype(float)
    return y, edges, time, time[edges].max(axis=0)


def edges_in_random_order(rng: np.random.Generator) -> Graph:
    """Edges come in random order, nodes with their first one: edge-exchangeable."""
    y = rng.integers(0, 2, NODES)
    edges = _pairs(rng, y)
    when = np.arange(edges.shape[1], dtype=float)
    time = np.full(NODES, np.inf)
    for end in edges:
        np.minimum.at(time, end, when)
    return y, edges, time, when


def late_edges(rng: np.random.Generator) -> Graph:
    """As in random order of nodes, but an edge comes long after its later end."""
    y, edges, time, when = nodes_in_random_order(rng)
    return y, edges, time, when + rng.exponential(NODES / 5, len(when))


def growing(rng: np.random.Generator) -> Graph:
    """Each node brings as many edges as its kind does, to any earlier node."""
    return _attached(rng, np.ones(NODES))


def growing_denser(rng: np.random.Generator) -> Graph:
    """The same, but later nodes bring more of them: four times as many at the end."""
    return _attached(rng, MORE)


WORLDS = {
    "nodes in random order": nodes_in_random_order,
    "edges in random order": edges_in_random_order,
    "edges later than their nodes": late_edges,
    "each node brings as many": growing,
    "later nodes bring more": growing_denser,
}


def draw_context(rng: np.random.Generator, graph: Graph, name: str) -> Context:
    """Relationships to context: more of them where the class or, in one world, the time brings."""
    y, _, time, _ = graph
    more = MORE if name == "later nodes bring more" else np.ones(NODES)
    node = np.repeat(np.arange(NODES), rng.poisson(EACH * more * np.where(y == 1, ACTIVE, 1.0)))
    late = name == "edges later than their nodes"
    return node, time[node] + (rng.exponential(NODES / 5, len(node)) if late else 0.0)


def _pairs(rng: np.random.Generator, y: Ints) -> Ints:
    weight = np.where(y == 1, ACTIVE, 1.0)
    ends = rng.choice(NODES, (2, NODES * EACH), p=weight / weight.sum())
    return np.asarray(ends[:, ends[0] != ends[1]], np.int64)


def _attached(rng: np.random.Generator, more: Floats) -> Graph:
    y = rng.integers(0, 2, NODES)
    brought = rng.poisson(EACH * more * np.where(y == 1, ACTIVE, 1.0))
    brought[0] = 0
    source = np.repeat(np.arange(NODES), brought)
    target = (rng.random(len(source)) * source).astype(np.int64)
    time = np.arange(NODES, dtype=float)
    return y, np.stack([source, target]), time, time[source]


def count_neighbours(graph: Graph, context: Context, now: float, way: str) -> Ints:
    """How many neighbours each node has at a time, by one of the ways [n]."""
    _, edges, time, when = graph
    if way == "none":
        return np.zeros(NODES, np.int64)
    if way == "context":
        node, arrived = context
        return np.bincount(node[arrived <= now], minlength=NODES)
    ends = np.concatenate([edges, edges[::-1]], axis=1)[:, np.tile(when <= now, 2)]
    if way == "cut":
        ends = ends[:, time[ends[1]] <= time[ends[0]]]
    return np.bincount(ends[0], minlength=NODES)


def learn(counts: Ints, y: Ints) -> Floats:
    """The chance of class 1 by the number of neighbours, in about eight bins [largest count]."""
    edges = np.unique(np.quantile(counts, np.linspace(0, 1, 9)[1:-1]))
    bins = np.searchsorted(edges, counts, side="right")
    seen = np.bincount(bins, minlength=len(edges) + 1)
    ones = np.bincount(bins, y, minlength=len(edges) + 1)
    places = np.searchsorted(edges, np.arange(NODES), side="right")
    return np.asarray(((ones + 1) / (seen + 2))[places])


def judge_newest(name: str, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Coverage and mean size of the sets of the newest nodes, by way and rule."""
    rng = np.random.default_rng(seed)
    graph = WORLDS[name](rng)
    y, _, time, when = graph
    arrived = np.sort(time[np.isfinite(time)])
    early, now = arrived[int(LABELLED_AT * len(arrived))], when[when <= arrived[-1]].max()
    labelled = rng.permutation(np.flatnonzero(time <= early))[: int(LABELLED_AT * NODES / 2)]
    train, calibration = np.array_split(labelled, 2)
    due = np.argsort(np.where(np.isfinite(time), time, -1))[-NEWEST:]
    ties = rng.random((NODES, 2)) * 1e-9
    context = draw_context(np.random.default_rng((seed, 1)), graph, name)
    degree, there = count_neighbours(graph, context, now, "now"), time <= now
    found = {}
    for way in WAYS:
        chance = learn(count_neighbours(graph, context, early, way)[train], y[train])
        one = chance[np.minimum(count_neighbours(graph, context, now, way), NODES - 1)]
        scores = np.stack([1 - one, one], axis=1) + ties
        known = scores[calibration, y[calibration]]
        for rule in RULES:
            sets = evaluate(
                NodeScores(known, scores[due], known),
                NodeDegrees(degree[calibration], degree[due], degree_counts(degree[there])),
                Promise((ALPHA,), rule_named(rule)),
            ).sets[0]
            hits = sets[np.arange(NEWEST), y[due]]
            found[way, rule] = float(hits.mean()), float(sets.sum() / NEWEST)
    return found


def measure(name: str, repetitions: int) -> list[dict[str, Any]]:
    """A row per way and rule: mean coverage with its standard error, and mean size."""
    runs = [judge_newest(name, seed) for seed in range(repetitions)]
    rows = []
    for way, rule in runs[0]:
        both = np.array([run[way, rule] for run in runs])
        error = float(both[:, 0].std(ddof=1) / np.sqrt(repetitions))
        rows.append(
            {"world": name, "counts": way, "rule": rule, "covered": float(both[:, 0].mean()),
             "covered_se": error, "mean size": float(both[:, 1].mean())}
        )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rows = []
    for name in WORLDS:
        for row in measure(name, 40 if given.quick else given.repetitions):
            rows.append(row)
            show(row)
    keep("count_columns", rows, given.quick, repetitions=given.repetitions)


if __name__ == "__main__":
    main()
