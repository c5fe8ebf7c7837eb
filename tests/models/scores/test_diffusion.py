"""Neighbour diffusion at some nodes: DAPS of the whole graph, whatever else is asked for."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.inference import graph_of, in_neighbours, leave_out_types, neighbourhood
from ringfence.models.inference import neighbourhood as package_function
from ringfence.models.scores import aps, daps, diffusion
from tests.models.inference.histories import History


def graph_and_scores(seed, nodes=40, relationships=90, classes=4):
    rng = np.random.default_rng(seed)
    graph = graph_of(rng.integers(0, nodes, (2, relationships)), nodes)
    probabilities = rng.dirichlet(np.full(classes, 0.5), size=nodes)
    return rng, graph, np.asarray(aps(probabilities, rng.random(nodes)))


def diffused_at(graph, scores, wanted, share):
    near = neighbourhood(graph, wanted)
    return diffusion.diffuse_scores(
        scores[near.rows], near.places, near.offsets, near.neighbours, share
    )


@pytest.mark.parametrize("types", [[], [0], [1], [0, 1]])
def test_neighbours_through_some_types_are_those_of_a_graph_without_the_others(types):
    grown = History(3)
    for step in range(30):
        grown.event("link", step, 3 * step + 1)
    graph = grown.graph()
    others = [kind for kind in (0, 1) if kind not in types]
    wanted = np.arange(graph.size)
    found = neighbourhood(graph, wanted, types)
    expected = neighbourhood(leave_out_types(graph, others), wanted)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    np.testing.assert_array_equal(found.neighbours, expected.neighbours)
    assert bool(len(found.neighbours)) == bool(types)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), share=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_some_nodes_get_the_scores_of_the_whole_graph(seed, share):
    rng, graph, scores = graph_and_scores(seed)
    wanted = rng.integers(0, graph.size, 12)
    near = in_neighbours(graph, np.arange(graph.size))
    edges = np.stack([near.sources, np.repeat(near.rows, near.counts())])
    found = diffused_at(graph, scores, wanted, share)
    np.testing.assert_allclose(found, np.asarray(daps(scores, edges, share))[wanted], atol=1e-15)
    everyone = diffused_at(graph, scores, np.arange(graph.size), share)
    assert np.array_equal(found, everyone[wanted])  # who else is asked for changes no bit


def test_renumbered_nodes_get_the_same_bits():
    rng, nodes = np.random.default_rng(3), 300
    ends = np.stack([np.arange(1, nodes), np.zeros(nodes - 1, np.int64)])  # a star
    scores = -rng.random((nodes, 3))
    order = rng.permutation(nodes)
    shuffled = np.empty_like(scores)
    shuffled[order] = scores
    found = diffused_at(graph_of(ends, nodes), scores, np.array([0]), 0.5)
    again = diffused_at(graph_of(order[ends], nodes), shuffled, order[:1], 0.5)
    assert np.array_equal(found, again)
    plain = {tuple(shuffled[rng.permutation(nodes)].sum(axis=0)) for _ in range(20)}
    assert len(plain) > 1  # a control: ordinary sums depend on the order


def test_lists_that_lead_outside_are_refused():
    scores, zero = np.zeros((3, 2)), np.array([0])
    wrong = [
        (np.array([3]), np.array([0, 0]), zero[:0]),
        (zero, np.array([0, 1]), np.array([-1])),
        (zero, np.array([0, 2]), zero),
        (zero, np.array([0, 1, 1]), zero),
        (np.array([0, 1]), np.array([0, 1, 0]), zero[:0]),
    ]
    for lists in wrong:
        with pytest.raises(ValueError, match=r"outside 0 to 2|one list per wanted node"):
            diffusion.diffuse_scores(scores, *lists, 0.5)
    with pytest.raises(ValueError, match="wanted"):
        neighbourhood(graph_of(np.array([[0], [1]]), 2), np.array([2]))
    with pytest.raises(ValueError, match="finite"):
        diffusion.diffuse_scores([[-np.inf]], zero, np.array([0, 0]), zero[:0], 0.5)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(diffusion).failed == 0
    module = __import__(package_function.__module__, fromlist=["neighbourhood"])
    assert doctest.testmod(module).failed == 0
