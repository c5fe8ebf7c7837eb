"""The advisor: right about sequences of known kind, and 'neither' where neither rule holds."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from ringfence.models.exchangeability import arrival_tests
from ringfence.models.exchangeability.advisor import advise
from ringfence.models.exchangeability.arrival_tests import Arrivals
from ringfence.models.sample.accounts import Drift, sample_graph

SEEDS = range(20)


def _advice(graph, seed, *, with_classes=True, **settings):
    settings = {"permutations": 499, **settings}
    classes = graph.y if with_classes else None
    return advise(
        graph.node_time, graph.edges, graph.edge_time, seed=seed, classes=classes, **settings
    )


def _preferential_attachment(nodes, edges_each, seed):
    """Every new node links to old ones by degree: old nodes are hubs, and edges come in bursts."""
    rng = np.random.default_rng(seed)
    ends, pairs = list(range(edges_each)), []
    for new in range(edges_each, nodes):
        old = set()
        while len(old) < edges_each:
            old.add(ends[rng.integers(len(ends))])
        for other in sorted(old):
            pairs.append((other, new))
            ends += [other, new]
    edges = np.array(pairs).T
    return np.arange(nodes), edges, edges.max(0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["node", "edge"])
@pytest.mark.parametrize("nodes", [120, 400])
def test_it_names_the_kind_of_the_sequence(kind, nodes):
    """At the level 1 % about one graph in a hundred may be called 'neither'."""
    rules = Counter(
        _advice(sample_graph(nodes, seed=seed, arrival=kind, mean_degree=8), seed).rule
        for seed in SEEDS
    )
    assert set(rules) <= {kind, "neither"}
    assert rules["neither"] <= stats.binom.ppf(0.999, len(SEEDS), 0.01)


def test_preferential_attachment_supports_neither_rule():
    for seed in range(6):
        advice = advise(*_preferential_attachment(400, 4, seed), seed=seed)
        assert advice.rule == "neither"
        assert advice.node_p <= 0.01
        assert advice.edge_p <= 0.01


@pytest.mark.slow
def test_a_drifting_class_mix_supports_neither_rule():
    """Seen through the classes; without the drift the same graphs support the node rule."""
    drift = Drift(at=0.6, shift=0.0, mix=(0.1, 0.1, 0.1, 0.1, 0.6))
    for seed in range(6):
        calm = sample_graph(500, seed=seed, mean_degree=8)
        drifting = sample_graph(500, seed=seed, mean_degree=8, drift=drift)
        assert _advice(calm, seed).rule == "node"
        assert _advice(drifting, seed).rule == "neither"


def test_edges_between_hubs_first_support_neither_rule():
    for seed in range(6):
        graph = sample_graph(500, seed=seed, mean_degree=8, arrival="edge")
        weight = graph.degrees()[graph.edges].sum(0)
        noise = np.random.default_rng(seed).random(weight.size)
        edge_time = np.argsort(np.argsort(weight * (noise - 1)))
        node_time = np.full(graph.nodes, arrival_tests.NEVER_ARRIVED)
        for ends in graph.edges:
            np.minimum.at(node_time, ends, edge_time)
        assert advise(node_time, graph.edges, edge_time, seed=seed).rule == "neither"


def test_edges_that_come_long_after_their_nodes_are_no_node_sequence():
    """The order of nodes is random, so that no test of it can object; the late edges do."""
    graph = sample_graph(500, seed=3, mean_degree=8)
    rng = np.random.default_rng(3)
    delay = rng.exponential(0.3 * np.ptp(graph.node_time), graph.edges.shape[1]).astype(np.int64)
    advice = advise(graph.node_time, graph.edges, graph.edge_time + delay, seed=3)
    late = next(e for e in advice.evidence if e.name == "late edges")
    tested = [e for e in advice.evidence if e.rule == "node" and e.p_value is not None]
    assert min(e.p_value for e in tested) > 0.01
    assert late.observed > 0.5
    assert advice.node_p == 0
    assert advice.rule == "neither"


def test_too_little_data_stays_undecided():
    node_time, edges = np.arange(6), np.array([[0, 1, 2], [3, 4, 5]])
    advice = advise(node_time, edges, edges.max(0), seed=0)
    assert advice.rule == "undecided"
    assert "Too little data" in advice.describe()


@pytest.mark.parametrize("kind", ["node", "edge"])
def test_each_test_is_exact_under_its_own_rule_and_blind_to_none_of_the_other(kind):
    """p-values over 80 small graphs: uniform or careful under the rule, small under the other."""
    tests = {
        "node": (
            arrival_tests.degree_by_arrival,
            arrival_tests.distance_of_ends,
            arrival_tests.class_by_arrival,
        ),
        "edge": (
            arrival_tests.bursts,
            arrival_tests.first_edges,
            arrival_tests.degree_by_edge,
            arrival_tests.class_by_edge,
        ),
    }[kind]
    found = {test.__name__: [] for test in tests}
    for seed in range(80):
        graph = sample_graph(150, seed=seed, mean_degree=6, arrival=kind)
        rng = np.random.default_rng(seed)
        arrivals = Arrivals(graph.node_time, graph.edges, graph.edge_time, graph.y)
        for test in tests:
            found[test.__name__].append(test(arrivals, rng, 300, 99).p_value)
    for name, p_values in found.items():
        for level in (0.05, 0.2, 0.5):
            too_many = stats.binom.ppf(0.9999, 80, level)
            assert (np.array(p_values) <= level).sum() <= too_many, name
    other = sample_graph(600, seed=1, arrival="edge" if kind == "node" else "node")
    arrivals = Arrivals(other.node_time, other.edges, other.edge_time, other.y)
    rng = np.random.default_rng(1)
    assert min(test(arrivals, rng, 5_000, 99).p_value for test in tests[:2]) == 0.01


def test_a_look_at_a_part_of_a_large_graph_is_as_right():
    for kind in ("node", "edge"):
        graph = sample_graph(20_000, seed=2, arrival=kind)
        assert _advice(graph, 2, cap=3_000).rule == kind


def test_words_give_the_advice_first_and_every_finding_after_it():
    advice = _advice(sample_graph(300, seed=5, mean_degree=8), 5)
    first, *rest = advice.describe().splitlines()
    assert "NodeEx" in first
    assert len(rest) == len(advice.evidence) == 8
    assert all(line.startswith(("- node: ", "- edge: ")) for line in rest)


def test_the_same_seed_gives_the_same_advice():
    graph = sample_graph(300, seed=6, mean_degree=8)
    assert _advice(graph, 1) == _advice(graph, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1, 2], [[0, 1], [1, 2]], [1]), r"\[2, E\] and \[E\] are needed"),
        (([0, 1], [[0], [1]], [1]), "needs at least 3 nodes"),
        (([0, 1, 2], [[0, 1], [1, 7]], [1, 2]), "edges to node 7 of 3"),
    ],
)
def test_a_graph_without_an_order_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        advise(*arguments, seed=0)


def test_classes_of_other_nodes_are_refused():
    with pytest.raises(ValueError, match="one per node"):
        advise([0, 1, 2], [[0, 1], [1, 2]], [1, 2], seed=0, classes=[1])


@pytest.mark.statistics
@pytest.mark.parametrize("kind", ["node", "edge"])
def test_a_rule_that_holds_is_rejected_as_seldom_as_promised(kind):
    """400 graphs at the level 5 %, where the correction for several tests has room to fail."""
    rejected = sum(
        _advice(sample_graph(200, seed=seed, arrival=kind, mean_degree=6), seed, level=0.05).rule
        != kind
        for seed in range(400)
    )
    assert rejected <= stats.binom.ppf(0.999, 400, 0.05)


def test_ranks_are_those_of_scipy_which_is_slow_to_import():
    rng = np.random.default_rng(3)
    for values in (rng.integers(0, 9, 200), rng.random(50), np.empty(0, np.int64), np.full(4, 7)):
        assert np.array_equal(arrival_tests._ranks(values), stats.rankdata(values))
