"""The sample graph: repeatable, of the shape it says, and exchangeable in the way it says."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ringfence.models.sample.accounts import (
    ACCOUNT_CLASSES,
    DAY_NS,
    NEVER_NS,
    START_NS,
    Drift,
    sample_graph,
)


def _order_p_value(values, times):
    """Two-sided p-value of 'values do not depend on the order of arrival' (rank correlation)."""
    return stats.spearmanr(values, times).pvalue


def _same(a, b, *names):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


EVERYTHING = ("features", "y", "edges", "node_time", "edge_time")


@pytest.mark.parametrize("arrival", ["node", "edge"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(arrival):
    first = sample_graph(2_000, seed=3, arrival=arrival)
    again = sample_graph(2_000, seed=3, arrival=arrival)
    other = sample_graph(2_000, seed=4, arrival=arrival)
    assert _same(first, again, *EVERYTHING)
    assert not any(_same(first, other, name) for name in EVERYTHING)


def test_both_kinds_of_arrival_grow_the_same_graph():
    by_node = sample_graph(2_000, seed=5, arrival="node")
    by_edge = sample_graph(2_000, seed=5, arrival="edge")
    assert _same(by_node, by_edge, "features", "y", "edges")
    assert not _same(by_node, by_edge, "node_time")


@pytest.mark.parametrize("nodes", [100, 1_000, 30_000])
def test_edges_are_pairs_once_each_without_loops_in_the_number_asked_for(nodes):
    graph = sample_graph(nodes, seed=1)
    low, high = graph.edges
    assert graph.edges.shape == (2, nodes * 10)
    assert graph.edges.dtype == np.int64
    assert (low < high).all()
    assert low.min() >= 0
    assert high.max() < nodes
    assert len(np.unique(low * nodes + high)) == graph.edges.shape[1]
    assert graph.degrees().sum() == 2 * graph.edges.shape[1]


def test_arrays_have_the_shapes_and_types_that_are_written_down():
    graph = sample_graph(500, seed=2, features=9, mean_degree=4)
    assert graph.features.shape == (500, 9)
    assert graph.features.dtype == np.float32
    assert np.isfinite(graph.features).all()
    assert graph.y.dtype == graph.node_time.dtype == graph.edge_time.dtype == np.int64
    assert graph.classes == tuple(ACCOUNT_CLASSES)
    assert graph.nodes == 500


def test_class_shares_and_homophily_are_those_asked_for():
    graph = sample_graph(
        20_000, seed=6, classes={"a": 1, "b": 2, "c": 1}, homophily=0.7, mean_degree=10
    )
    shares = np.bincount(graph.y) / graph.nodes
    inside = (graph.y[graph.edges[0]] == graph.y[graph.edges[1]]).mean()
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.015)
    assert inside == pytest.approx(0.7, abs=0.01)


def test_degrees_have_a_power_law_tail_and_a_poisson_graph_has_none():
    """Hill's estimate of the tail's exponent from the 2 % largest degrees."""

    def hill(degrees):
        top = np.sort(degrees)[-len(degrees) // 50 :]
        return 1 + 1 / np.log(top / top[0]).mean()

    degrees = sample_graph(50_000, seed=7, tail=2.8).degrees()
    poisson = np.random.default_rng(7).poisson(20, 50_000)
    assert 2.4 < hill(degrees) < 3.4
    assert hill(poisson) > 8
    assert degrees.max() > 10 * degrees.mean()


def test_features_tell_classes_apart_in_part():
    """The best linear rule, the nearest centre, is far from chance and far from certain."""
    graph = sample_graph(20_000, seed=8)
    half = graph.nodes // 2
    centres = np.stack(
        [graph.features[:half][graph.y[:half] == c].mean(0) for c in range(len(graph.classes))]
    )
    distance = ((graph.features[half:, None, :] - centres) ** 2).sum(2)
    accuracy = (distance.argmin(1) == graph.y[half:]).mean()
    assert 0.5 < accuracy < 0.75


def test_an_edge_comes_with_its_later_end_in_a_node_sequence():
    graph = sample_graph(1_000, seed=9, arrival="node")
    assert np.array_equal(graph.edge_time, graph.node_time[graph.edges].max(0))
    assert len(np.unique(graph.node_time)) == graph.nodes
    assert graph.node_time.min() > START_NS
    assert graph.node_time.max() == START_NS + 30 * DAY_NS


def test_a_node_comes_with_its_first_edge_in_an_edge_sequence_and_never_without_one():
    graph = sample_graph(2_000, seed=10, arrival="edge", mean_degree=3)
    first = np.full(graph.nodes, NEVER_NS)
    for (u, v), time in zip(graph.edges.T, graph.edge_time, strict=True):
        first[u], first[v] = min(first[u], time), min(first[v], time)
    assert np.array_equal(graph.node_time, first)
    assert np.array_equal(graph.arrived, graph.degrees() > 0)
    assert 0 < (~graph.arrived).sum() < 500
    assert len(np.unique(graph.edge_time)) == graph.edges.shape[1]


def test_arrivals_cut_the_graph_into_batches_that_add_up_to_it():
    graph = sample_graph(1_000, seed=11, arrival="edge", mean_degree=3)
    cuts = START_NS + np.arange(0, 31, 5) * DAY_NS
    batches = [graph.arrivals(a, b) for a, b in itertools.pairwise(cuts)]
    nodes = np.concatenate([nodes for nodes, _ in batches])
    edges = np.concatenate([edges for _, edges in batches])
    assert (np.diff(graph.node_time[nodes]) >= 0).all()
    assert (np.diff(graph.edge_time[edges]) > 0).all()
    assert np.array_equal(np.sort(nodes), np.flatnonzero(graph.arrived))
    assert np.array_equal(np.sort(edges), np.arange(graph.edges.shape[1]))


def test_nothing_about_a_node_depends_on_its_place_in_a_node_sequence():
    """p-values of independence over 40 graphs are uniform; on an edge sequence degrees are not."""
    found = {"class": [], "degree": [], "feature": [], "size-biased": []}
    for seed in range(40):
        graph = sample_graph(600, seed=seed, mean_degree=8)
        found["class"].append(_order_p_value(graph.y, graph.node_time))
        found["degree"].append(_order_p_value(graph.degrees(), graph.node_time))
        found["feature"].append(_order_p_value(graph.features[:, 0], graph.node_time))
        graph = sample_graph(600, seed=seed, mean_degree=8, arrival="edge")
        found["size-biased"].append(_order_p_value(graph.degrees(), graph.node_time))
    for about in ("class", "degree", "feature"):
        assert stats.kstest(found[about], "uniform").pvalue > 0.001, about
    assert max(found["size-biased"]) < 1e-6


def test_edges_of_an_edge_sequence_come_in_uniformly_random_order():
    """Neighbours in time share an end as often as in a shuffled order; in a node sequence more."""

    def shared(ends):
        return sum((ends[i, :-1] == ends[j, 1:]).sum() for i in (0, 1) for j in (0, 1))

    def p_value(graph, rng):
        ends = graph.edges[:, np.argsort(graph.edge_time, kind="stable")]
        shuffled = [shared(rng.permutation(ends, axis=1)) for _ in range(99)]
        return (1 + (np.array(shuffled) >= shared(ends)).sum()) / 100

    rng = np.random.default_rng(0)
    found = {
        arrival: [
            p_value(sample_graph(300, seed=seed, mean_degree=8, arrival=arrival), rng)
            for seed in range(40)
        ]
        for arrival in ("node", "edge")
    }
    assert stats.kstest(found["edge"], "uniform").pvalue > 0.001
    assert max(found["node"]) == 0.01


@pytest.mark.parametrize("arrival", ["node", "edge"])
def test_a_planted_drift_moves_the_features_of_late_nodes_and_nothing_else(arrival):
    drift = Drift(at=0.5, shift=0.8)
    plain = sample_graph(2_000, seed=12, arrival=arrival)
    moved = sample_graph(2_000, seed=12, arrival=arrival, drift=drift)
    assert _same(plain, moved, "y", "edges", "node_time", "edge_time")
    changed = (plain.features != moved.features).any(1)
    assert changed.sum() == pytest.approx(1_000, abs=1)
    assert moved.node_time[changed].min() >= moved.node_time[~changed].max()


def test_a_planted_drift_of_the_class_mix_is_seen_by_the_order_of_arrival():
    drift = Drift(at=0.6, shift=0.0, mix=(0.1, 0.1, 0.1, 0.1, 0.6))
    plain = sample_graph(1_000, seed=13)
    moved = sample_graph(1_000, seed=13, drift=drift)
    assert _order_p_value(plain.y == 4, plain.node_time) > 0.01
    assert _order_p_value(moved.y == 4, moved.node_time) < 1e-6
    late = np.argsort(moved.node_time)[600:]
    assert (moved.y[late] == 4).mean() == pytest.approx(0.6, abs=0.08)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"nodes": 50}, "needs at least 82"),
        ({"classes": {"one": 1.0}}, "2 or more"),
        ({"classes": {"a": 1.0, "b": 0.0}}, "share above 0"),
        ({"features": 3}, "at least one per class"),
        ({"homophily": 1.5}, "homophily 1.5"),
        ({"tail": 2.0}, "above 2"),
        ({"arrival": "star"}, "'node' or 'edge'"),
        ({"span_ns": 5}, "one nanosecond per arrival"),
        ({"drift": Drift(at=2.0)}, "outside"),
        ({"arrival": "edge", "drift": Drift(at=0.5, mix=(1, 1, 1, 1, 1))}, "class mix"),
    ],
)
def test_a_graph_that_cannot_be_made_is_refused_with_the_reason(wrong, words):
    arguments = {"nodes": 1_000, "seed": 0, **wrong}
    with pytest.raises(ValueError, match=words):
        sample_graph(arguments.pop("nodes"), **arguments)
