"""Graph sequences as arrays: what is there at each step, and the coverage matrix on a small one."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.models.sequences.sequence import (
    coverage_matrix,
    edge_sequence,
    node_sequence,
    scores_over_time,
)

NODES = 60
CONTEXT = np.arange(10)


@pytest.fixture(scope="module")
def edges():
    rng = np.random.default_rng(0)
    return np.stack(np.nonzero(np.triu(rng.random((NODES, NODES)) < 0.06, 1)))


def test_a_node_sequence_brings_each_edge_with_its_later_end(edges):
    found = node_sequence(edges, NODES, CONTEXT, calibration=12, steps=5, seed=1)
    assert (found.edge_step == np.maximum(*found.node_step[edges])).all()
    assert len(found.calibration) == 12
    assert (found.node_step[found.calibration] == 0).all()
    assert (found.node_step[CONTEXT] == 0).all()
    arrivals = found.node_step[found.evaluated]
    assert len(arrivals) == 38
    assert set(np.bincount(arrivals)[1:]) <= {7, 8}


def test_an_edge_sequence_brings_each_node_with_its_first_edge(edges):
    found = edge_sequence(edges, NODES, CONTEXT, calibration_edges=8, steps=5, seed=1)
    inside = (edges < 10).all(axis=0)
    assert (found.edge_step[inside] == 0).all()
    assert ((found.edge_step == 0) & ~inside).sum() == 8
    start = edges[:, (found.edge_step == 0) & ~inside]
    assert found.calibration.tolist() == sorted(set(start.ravel()) - set(CONTEXT))
    for node in range(10, NODES):
        own = found.edge_step[(edges == node).any(axis=0)]
        assert found.node_step[node] == (own.min() if len(own) else 6)


def test_the_graph_only_grows_and_ends_as_the_whole(edges):
    for found in (
        node_sequence(edges, NODES, CONTEXT, calibration=12, steps=5, seed=1),
        edge_sequence(edges, NODES, CONTEXT, calibration_edges=8, steps=5, seed=1),
    ):
        before = set()
        for step in range(6):
            there = set(map(tuple, found.edge_index(step).T.tolist()))
            assert before <= there
            before = there
            degrees = np.bincount(found.edge_index(step)[1], minlength=NODES)
            assert degrees.tolist() == found.degrees(step).tolist()
        assert len(before) == 2 * edges.shape[1]


def test_the_order_follows_the_seed_and_every_node_can_calibrate(edges):
    def drawn(seed):
        return node_sequence(edges, NODES, CONTEXT, calibration=12, steps=5, seed=seed).calibration

    assert drawn(1).tolist() == drawn(1).tolist()
    often = np.bincount(np.concatenate([drawn(seed) for seed in range(400)]), minlength=NODES)
    assert (often[:10] == 0).all()
    assert (np.abs(often[10:] - 96) < 5 * np.sqrt(96 * 0.76)).all()


@pytest.fixture(scope="module")
def tiny():
    """Nodes 0 to 3, a path, calibrate; 4 and 5 come in two steps. The score is minus the degree."""
    edges = np.array([[0, 1, 2, 3, 4, 3], [1, 2, 3, 4, 5, 5]])
    found = next(
        one
        for one in (
            node_sequence(edges, 6, np.empty(0, int), calibration=4, steps=2, seed=s)
            for s in range(1000)
        )
        if one.node_step.tolist() == [0, 0, 0, 0, 1, 2]
    )

    def score(edge_index):
        degree = np.bincount(edge_index[1], minlength=6)
        return np.stack([-degree, -degree - 0.5], axis=1)

    return found, np.array([0, 0, 0, 0, 0, 1]), scores_over_time(found, score)


def test_the_coverage_matrix_by_hand(tiny):
    """alpha = 0.4, rank 2 of 4. Degrees 1 2 2 2 | 1 at step 1; 1 2 2 3 | 2 2 at step 2."""
    found, y, scores = tiny
    matrix = coverage_matrix(found, y, scores, 0.4, "node")
    assert matrix.covered[4:].tolist() == [[-1, 1, 1], [-1, -1, 0]]
    assert matrix.size[4:].tolist() == [[-1, 2, 1], [-1, -1, 1]]
    assert (matrix.covered[:4] == -1).all()
    assert matrix.at(found.node_step).tolist() == [1, 0]
    assert matrix.at(np.full(6, 2)).tolist() == [1, 0]
    assert matrix.at(np.full(6, 3)).tolist() == []


def test_naive_keeps_the_first_threshold_and_edgeex_weighs_by_degree(tiny):
    """Step 0 degrees are 1 2 2 1. At alpha = 0.65 naive takes rank 3 of 4, score -1."""
    found, y, scores = tiny
    naive = coverage_matrix(found, y, scores, 0.65, "naive")
    assert naive.covered[4].tolist() == [-1, 1, 0]
    # step 2: weights 1/3 1/2 1/2 1 by rising score, + 1 over 10/3: p = 0.4, 0.7 at -2, 1.0
    for alpha, covered in ((0.39, 1), (0.69, 1), (0.71, 0)):
        assert coverage_matrix(found, y, scores, alpha, "edge").covered[4, 2] == covered
    # the exact test weight of a node of degree 2 is 1/2: p = (1/3 + 1 + 1/2) / (17/6) = 0.647
    assert coverage_matrix(found, y, scores, 0.64, "edge", "exact").covered[4, 2] == 1
    assert coverage_matrix(found, y, scores, 0.66, "edge", "exact").covered[4, 2] == 0
