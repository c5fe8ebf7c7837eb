"""One rule for both worlds: coverage within degree bands where nodes or edges come in random order.

Graphs are simulated whole, with message passing (a node's logits are a fixed map of the mean
features around it), and evaluated as a scoring run does: the newcomers of a batch, on arrival, on
the graph as it is then. Calibration nodes are a random half of the nodes that were there at the
beginning, as a split of labelled nodes gives them. NodeEx is the negative control: where edges
arrive in exchangeable order, it falls short.
"""

import numpy as np
import pytest

from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
)
from ringfence.models.inference import graph_of, in_neighbours, neighbourhood
from ringfence.models.rules.registry import rule_named
from ringfence.models.scores import softmax64
from ringfence.models.scores.node_scores import needs_neighbours, node_scores

CLASSES, NODES, EDGES, BATCHES, ALPHA = 4, 3_000, 6_000, 10, 0.1
REPETITIONS = 30


def world(rng, order):
    """Classes, features, edges in the order of their arrival, and when each node arrives."""
    classes = rng.integers(0, CLASSES, NODES)
    features = rng.normal(size=(NODES, CLASSES)) + 1.1 * np.eye(CLASSES)[classes]
    weight = rng.pareto(2.2, NODES) + 0.2
    a = rng.choice(NODES, 3 * EDGES, p=weight / weight.sum())
    b = rng.choice(NODES, 3 * EDGES, p=weight / weight.sum())
    keep = (a != b) & ((classes[a] == classes[b]) | (rng.random(3 * EDGES) < 0.25))
    edges = np.stack([a[keep], b[keep]])[:, :EDGES]
    if order == "edge":
        time = np.full(NODES, np.inf)
        for end in edges:
            np.minimum.at(time, end, np.arange(edges.shape[1]))
        return classes, features, edges, np.arange(edges.shape[1]), time
    time = rng.permutation(NODES).astype(float)
    return classes, features, edges, time[edges].max(axis=0), time


def probabilities(features, graph):
    """Mean features of a node and its neighbours, sharpened: the same map for every node."""
    near = in_neighbours(graph, np.arange(graph.size))
    total = features.copy()
    np.add.at(total, np.repeat(near.rows, near.counts()), features[near.sources])
    return softmax64(2.0 * total / (1 + near.counts())[:, None])


def covered_on_arrival(seed, order, rule, score, alphas=(ALPHA,)):
    """Covered and evaluated nodes, classes in all sets, full sets; batch by batch on arrival."""
    rng = np.random.default_rng(seed)
    classes, features, edges, edge_time, node_time = world(rng, order)
    u, horizon = rng.random(NODES), edge_time.max() + 1
    start = 0.4 * horizon
    there = np.flatnonzero(node_time <= start)
    calibration = rng.permutation(there)[: len(there) // 2]
    counts = np.zeros(4)
    for batch in range(BATCHES):
        now = start + (horizon - start) * (batch + 1) / BATCHES
        before = start + (horizon - start) * batch / BATCHES
        due = np.flatnonzero((node_time > before) & (node_time <= now))
        graph = graph_of(edges[:, edge_time <= now], NODES)
        wanted = np.concatenate([calibration, due])
        near = neighbourhood(graph, wanted) if needs_neighbours(score) else None
        rows = wanted if near is None else near.rows
        found = node_scores(
            score, probabilities(features, graph)[rows], u[rows],
            {"diffusion": 0.5} if near else {}, near,
        )  # fmt: skip
        n = len(calibration)
        known = found[np.arange(n), classes[calibration]]
        degree = np.diff(in_neighbours(graph, np.arange(NODES)).offsets)
        present = node_time <= now
        result = evaluate(
            NodeScores(known, found[n:], known),
            NodeDegrees(degree[calibration], degree[due], degree_counts(degree[present])),
            Promise(alphas, rule_named(rule)),
        )
        sets = result.sets[0]
        hits = sets[np.arange(len(due)), classes[due]].sum()
        counts += [hits, len(due), sets.sum(), (sets.sum(axis=1) == CLASSES).sum()]
    return counts


def coverage(order, rule, score, repetitions=REPETITIONS, **more):
    """Mean coverage over whole repetitions, its standard error, mean size, share of full sets."""
    each = np.array(
        [covered_on_arrival(seed, order, rule, score, **more) for seed in range(repetitions)]
    )
    shares = each[:, 0] / each[:, 1]
    total = each.sum(axis=0)
    error = shares.std(ddof=1) / np.sqrt(repetitions)
    return shares.mean(), error, total[2] / total[1], total[3] / total[1]


@pytest.mark.statistics
@pytest.mark.parametrize("score", ["APS", "DAPS", "TPS"])
@pytest.mark.parametrize("order", ["node", "edge"])
def test_degree_bands_keep_the_promise_in_both_worlds(order, score):
    share, error, _, full = coverage(order, "auto", score)
    assert share >= 1 - ALPHA - 0.01 - 2 * error
    assert share <= 1 - ALPHA + 0.03
    assert full < 0.25


@pytest.mark.statistics
@pytest.mark.parametrize("score", ["APS", "DAPS"])
def test_without_bands_the_promise_breaks_where_edges_arrive_in_random_order(score):
    """The negative control: the rule that was the default before."""
    share, error, *_ = coverage("edge", "NodeEx", score)
    assert share < 1 - ALPHA - 0.02 - 2 * error


@pytest.mark.statistics
def test_where_nodes_arrive_in_random_order_bands_cost_little():
    plain, _, size, _ = coverage("node", "NodeEx", "APS")
    banded, _, banded_size, _ = coverage("node", "auto", "APS")
    assert abs(plain - (1 - ALPHA)) < 0.01
    assert 0 <= banded - plain < 0.02
    assert banded_size < 1.10 * size


@pytest.mark.statistics
def test_a_small_alpha_gets_larger_bands_and_keeps_its_promise():
    share, error, *_ = coverage("edge", "auto", "APS", alphas=(0.05,))
    assert 0.95 - 0.01 - 2 * error <= share <= 0.975
