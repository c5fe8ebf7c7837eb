"""Subgraph sampling keeps its promise on average over random calibration sets of one graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chi2, norm

from ringfence.models.conformal.sets import p_values
from ringfence.models.hashing import uniforms
from ringfence.models.sample.accounts import sample_graph
from ringfence.models.scores import aps, softmax64
from ringfence.models.sequences.subgraphs import (
    averaged_scores,
    bernoulli_vote,
    draw_groups,
    votes,
)

pytestmark = pytest.mark.slow

NODES, CALIBRATION, ALPHA, COUNT, SIZE = 260, 29, 0.1, 8, 40
EXPECTED = 27 / 30  # (n + 1 - l) / (n + 1) with l = floor(0.1 * 30) = 3
LEVEL = 1e-3  # false-alarm rate of each assertion below, were the seeds drawn anew


@pytest.fixture(scope="module")
def graph():
    return sample_graph(NODES, seed=3, classes={"a": 1, "b": 1, "c": 1}, features=3,
                        mean_degree=10, separation=1.2, homophily=0.8)  # fmt: skip


@pytest.fixture(scope="module")
def score(graph):
    """APS of softmax(2 (x + mean of the neighbours' x)) on the induced subgraph."""
    adjacency = np.zeros((NODES, NODES))
    adjacency[graph.edges[0], graph.edges[1]] = adjacency[graph.edges[1], graph.edges[0]] = 1
    centres = np.stack([graph.features[graph.y == c].mean(0) for c in range(3)])
    x = graph.features @ centres.T
    u = uniforms([str(node) for node in range(NODES)], 0, "score")

    def scored(nodes):
        inside = adjacency[np.ix_(nodes, nodes)]
        mean = inside @ x[nodes] / np.maximum(inside.sum(1, keepdims=True), 1)
        return aps(softmax64(torch.from_numpy(2 * (x[nodes] + 2 * mean))), u[nodes])

    return scored


def replicate(graph, score, seed):
    """Coverage of each way to combine K subgraphs, for one random calibration set."""
    order = np.random.default_rng(seed).permutation(NODES)
    context, known, test = np.split(order, [20, 20 + CALIBRATION])
    groups = draw_groups(test, count=COUNT, size=SIZE, seed=seed)
    given = (score, groups, known, graph.y[known])
    truth = (np.arange(len(test)), graph.y[test])
    counted = votes(*given, ALPHA, context)
    random = np.random.default_rng([seed, 1]).random(counted.shape)
    averaged = averaged_scores(*given, context).p_values()
    return {
        "vote": bernoulli_vote(counted, COUNT, random)[truth].mean(),
        "average": (averaged > ALPHA)[truth].mean(),
        "union": (counted > 0)[truth].mean(),
        "intersection": (counted == COUNT)[truth].mean(),
    }


@pytest.fixture(scope="module")
def coverage(graph, score):
    found = [replicate(graph, score, seed) for seed in range(250)]
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def z_of(values):
    return (values.mean() - EXPECTED) / (values.std(ddof=1) / np.sqrt(len(values)))


@pytest.mark.statistics
@pytest.mark.parametrize("way", ["vote", "average"])
def test_the_vote_and_the_average_cover_as_promised(way, coverage):
    assert abs(z_of(coverage[way])) < norm.isf(LEVEL / 2)


@pytest.mark.statistics
def test_the_union_covers_too_much_and_the_intersection_too_little(coverage):
    assert z_of(coverage["union"]) > norm.isf(LEVEL / 2)
    assert z_of(coverage["intersection"]) < -norm.isf(LEVEL / 2)


def test_every_round_holds_every_test_node_once_in_groups_of_about_the_size():
    groups = draw_groups(np.arange(50, 153), count=5, size=20, seed=1)
    for one_round in groups.rounds:
        assert sorted(np.concatenate(one_round).tolist()) == list(range(103))
        assert {len(group) for group in one_round} <= {20, 21}
    first, second = (np.concatenate(r).tolist() for r in groups.rounds[:2])
    assert first != second


def test_every_other_test_node_is_equally_likely_company():
    """Chi-square over the 11 companions of node 0 in groups of 4; false-alarm rate 1e-4."""
    met = np.zeros(12)
    for seed in range(600):
        for one_round in draw_groups(np.arange(12), count=5, size=4, seed=seed).rounds:
            met[next(group for group in one_round if 0 in group)] += 1
    expected = 600 * 5 * 3 / 11
    # 3 of 11 without replacement: covariance (3/11) (8/11) (11/10) (I - 1/11) per round
    variance = 600 * 5 * (3 / 11) * (8 / 11) * (11 / 10)
    assert ((met[1:] - expected) ** 2 / variance).sum() < chi2(10).isf(1e-4)


def test_each_subgraph_holds_calibration_and_context_and_its_group():
    seen = []

    def score(nodes):
        seen.append(nodes.tolist())
        return np.zeros((len(nodes), 2))

    groups = draw_groups(np.arange(10, 20), count=3, size=5, seed=1)
    votes(score, groups, np.array([1, 2]), np.array([0, 1]), 0.5, context=np.array([7, 8]))
    assert len(seen) == 6
    assert all(nodes[:2] == [1, 2] and nodes[-2:] == [7, 8] for nodes in seen)
    assert sorted(node for nodes in seen[:2] for node in nodes[2:-2]) == list(range(10, 20))


def test_averages_are_taken_over_a_nodes_own_subgraphs():
    def score(nodes):
        return np.full((len(nodes), 2), float(nodes[3:].sum()))  # what the group holds

    groups = draw_groups(np.arange(10, 14), count=4, size=2, seed=1)
    found = averaged_scores(score, groups, np.array([1, 2, 3]), np.array([0, 1, 1]))
    for row in range(4):
        own = [sum(10 + g) for r in groups.rounds for g in r if row in g]
        assert found.scores[row].tolist() == [np.mean(own)] * 2
        assert found.calibration[row].tolist() == [np.mean(own)] * 3
    expected = [p_values(found.calibration[i], found.scores[i]).tolist() for i in range(4)]
    assert found.p_values().tolist() == expected


def test_one_subgraph_of_all_is_plain_conformal_prediction(graph, score):
    known, test = np.arange(30), np.arange(30, NODES)
    groups = draw_groups(test, count=1, size=NODES, seed=1)
    counted = votes(score, groups, known, graph.y[known], ALPHA)
    scores = score(np.arange(NODES)).numpy()
    expected = np.asarray(p_values(scores[known, graph.y[known]], scores[test])) > ALPHA
    assert (counted == expected).all()
    averaged = averaged_scores(score, groups, known, graph.y[known])
    assert ((averaged.p_values() > ALPHA) == expected).all()


def test_the_vote_is_certain_at_both_ends_and_proportional_between():
    grid = (np.arange(1000) / 1000)[:, None]
    for count in (1, 3, 8):
        for given in range(count + 1):
            share = bernoulli_vote(np.full((1000, 1), given), count, grid).mean()
            assert share == pytest.approx(given / count, abs=0.001)


def test_what_does_not_fit_is_refused_with_words(score):
    with pytest.raises(ValueError, match="each node once"):
        draw_groups(np.array([1, 1]), count=2, size=1, seed=0)
    with pytest.raises(ValueError, match="1 nodes are both test and calibration nodes"):
        votes(score, draw_groups(np.array([1, 2]), count=1, size=1, seed=0), np.array([2]),
              np.array([0]), 0.1)  # fmt: skip
    with pytest.raises(ValueError, match="equal shapes and 0 to 2 are needed"):
        bernoulli_vote(np.array([[3]]), 2, np.array([[0.5]]))
