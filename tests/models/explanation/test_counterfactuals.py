"""Outputs of a changed graph equal those of a network that never saw what was taken away."""

import numpy as np
import pytest
import torch

from ringfence.models.explanation.counterfactual_query import ANY, Question
from ringfence.models.explanation.counterfactuals import WhatIf, neighbours_of
from ringfence.models.inference import forward_whole, graph_of, plan_of
from ringfence.models.networks.factory import build

NODES, WIDTH = 60, 6


def world(network, seed=0):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, NODES, (2, 240))
    edges = edges[:, edges[0] != edges[1]]
    both = np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1)
    features = rng.normal(size=(NODES, WIDTH)).astype(np.float32)
    module = build(network, WIDTH, 4, hidden=8, seed=seed).eval()
    mean = rng.normal(size=WIDTH).astype(np.float32)
    return plan_of(module, torch.from_numpy(mean), torch.ones(WIDTH)), both, features, mean


def ask_about(plan, edges, features, mean):
    return WhatIf(plan, graph_of(edges, NODES, undirected=False), features, mean)


def lacking(node, others, blank=()):
    return Question(node, tuple((int(other), ANY) for other in others), blank)


def from_scratch(plan, edges, features):
    """A whole pass over the changed graph, with nothing kept."""
    return forward_whole(plan, graph_of(edges, NODES, undirected=False), features)


def without(edges, node, others):
    gone = (edges[0] == node) & np.isin(edges[1], others)
    gone |= (edges[1] == node) & np.isin(edges[0], others)
    return edges[:, ~gone]


@pytest.mark.parametrize("network", ["GCN", "SAGE", "GAT", "MLP", "APPNP"])
def test_every_answer_is_that_of_a_whole_pass_over_the_changed_graph(network):
    plan, edges, features, mean = world(network)
    what_if = ask_about(plan, edges, features, mean)
    node = 7
    near = neighbours_of(what_if.graph, node)
    rows = np.array([node, *near])
    base = from_scratch(plan, edges, features)
    assert np.array_equal(what_if.outputs(None, rows), base[rows])
    questions = [lacking(node, [other]) for other in near]
    questions += [lacking(node, near[:3])]
    questions += [Question(node, blank=(column,)) for column in range(WIDTH)]
    questions += [lacking(node, near[:1], (2,)), Question(node, ((ANY, ANY),))]
    for question in questions:
        changed = features.copy()
        changed[node, list(question.blank)] = mean[list(question.blank)]
        others = [other for other, _ in question.without]
        others = near if others == [ANY] else others
        expected = from_scratch(plan, without(edges, node, others), changed)
        assert np.array_equal(what_if.outputs(question, rows), expected[rows]), question
    assert np.array_equal(what_if.outputs(None, rows), base[rows])  # nothing of it stays


def test_control_a_neighbour_that_is_taken_away_moves_the_outputs():
    plan, edges, features, mean = world("GCN")
    what_if = ask_about(plan, edges, features, mean)
    node = np.array([7])
    base = what_if.outputs(None, node)
    near = int(neighbours_of(what_if.graph, 7)[0])
    assert not np.array_equal(what_if.outputs(lacking(7, [near]), node), base)
    assert not np.array_equal(what_if.outputs(Question(7, blank=(0,)), node), base)


def test_directed_relationships_are_taken_away_at_both_ends():
    plan, _, features, mean = world("SAGE")
    edges = np.array([[1, 2, 3, 7], [7, 7, 1, 2]])  # 7 hears 1 and 2, and 2 hears 7
    what_if = ask_about(plan, edges, features, mean)
    everyone = np.arange(NODES)
    expected = from_scratch(plan, without(edges, 7, [2]), features)
    assert np.array_equal(what_if.outputs(lacking(7, [2]), everyone), expected)
