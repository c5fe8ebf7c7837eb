"""The replay of a growing graph equals a full forward pass on every G_t, and so does all of C."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
)
from ringfence.models.conformal.row_thresholds import row_thresholds
from ringfence.models.conformal.sets import threshold
from ringfence.models.networks import GAT, GCN
from ringfence.models.rules.degree_bands import DEGREE_BANDS
from ringfence.models.scores import aps, softmax64
from ringfence.models.sequences.replay import Requests, replay
from ringfence.models.sequences.sequence import (
    coverage_matrix,
    edge_sequence,
    node_sequence,
    scores_over_time,
)
from ringfence.models.sequences.timeline import NodeScore, evaluate_requests, true_scores_over_time

NODES, FEATURES, CLASSES, ALPHA = 150, 9, 4, 0.1
CONTEXT = np.arange(20)


class World:
    """A small random graph, an untrained GCN in float64, and one sequence of each kind."""

    def __init__(self):
        rng = np.random.default_rng(3)
        self.edges = np.stack(np.nonzero(np.triu(rng.random((NODES, NODES)) < 0.03, 1)))
        self.x = rng.normal(size=(NODES, FEATURES))
        self.y = rng.integers(0, CLASSES, NODES)
        self.u = rng.random(NODES)
        with torch.random.fork_rng():
            torch.manual_seed(5)
            self.network = GCN(FEATURES, CLASSES).double().eval()
        arriving = NODES - len(CONTEXT) - 30
        self.node = node_sequence(
            self.edges, NODES, CONTEXT, calibration=30, steps=arriving, seed=1
        )
        outside = int((~(self.edges < 20).all(axis=0)).sum())
        self.edge = edge_sequence(
            self.edges, NODES, CONTEXT, calibration_edges=25, steps=outside - 25, seed=1
        )

    def forward(self, edge_index):
        with torch.no_grad():
            return self.network(torch.from_numpy(self.x), edge_index).numpy()

    def scores(self, edge_index):
        return aps(softmax64(self.forward(edge_index)), self.u)


@pytest.fixture(scope="module")
def world():
    return World()


def _largest_difference(world, sequence, full):
    """Between replayed logits, carried from row to row, and ``full(step)``, over all steps."""
    now, worst = np.full((NODES, CLASSES), np.nan), 0.0
    blocks = list(
        replay(world.network.state_dict(), world.x, sequence, watched=np.arange(NODES), rows=400)
    )
    assert len(blocks) > 3
    step, node, degree, logits = (
        np.concatenate([getattr(b, name) for b in blocks])
        for name in ("step", "node", "degree", "logits")
    )
    for t in range(sequence.steps + 1):
        rows = step == t
        now[node[rows]] = logits[rows]
        assert (degree[rows] == sequence.degrees(t)[node[rows]]).all()
        there = sequence.node_step <= t
        worst = max(worst, float(np.abs(now[there] - full(t)[there]).max()))
    return worst


@pytest.mark.parametrize("kind", ["node", "edge"])
def test_replayed_logits_are_those_of_a_full_forward_on_every_step(world, kind):
    sequence = getattr(world, kind)
    worst = _largest_difference(world, sequence, lambda t: world.forward(sequence.edge_index(t)))
    assert worst < 1e-12
    # control: one step late is seen at once
    late = _largest_difference(
        world, sequence, lambda t: world.forward(sequence.edge_index(max(t - 1, 0)))
    )
    assert late > 1e-3


def test_requested_nodes_get_the_logits_of_their_own_step(world):
    sequence = world.edge
    nodes = np.flatnonzero(sequence.evaluated & (sequence.node_step <= sequence.steps))
    times = np.random.default_rng(0).integers(sequence.node_step[nodes], sequence.steps + 1)
    rows = list(
        replay(
            world.network.state_dict(),
            csr_array(world.x),
            sequence,
            watched=sequence.calibration,
            requests=Requests(nodes, times),
        )
    )
    seen = 0
    for block in rows:
        for step, node, logits in zip(
            block.step[block.asked], block.node[block.asked], block.logits[block.asked], strict=True
        ):
            assert times[nodes == node] == step
            expected = world.forward(sequence.edge_index(step))[node]
            np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-12)
            seen += 1
    assert seen == len(nodes)


@pytest.mark.parametrize("kind", ["node", "edge"])
def test_evaluation_over_time_equals_the_coverage_matrix(world, kind):
    """Every rule, on arrival and at the last step, sizes included."""
    sequence = getattr(world, kind)
    nodes = np.flatnonzero(sequence.evaluated & (sequence.node_step <= sequence.steps))
    times = np.concatenate([sequence.node_step[nodes], np.full(len(nodes), sequence.steps)])
    rules = ("node", "naive") if kind == "node" else ("node", "edge", "edge_exact", "naive")
    found = evaluate_requests(
        replay(
            world.network.state_dict(),
            world.x,
            sequence,
            watched=sequence.calibration,
            requests=Requests(np.tile(nodes, 2), times),
            rows=300,
        ),
        sequence.calibration,
        world.y,
        NodeScore(world.u),
        ALPHA,
        rules,
    )
    scores = scores_over_time(sequence, world.scores)
    matrices = {}
    for rule in rules:
        exact = rule == "edge_exact"
        matrices[rule] = coverage_matrix(
            sequence, world.y, scores, ALPHA, "edge" if exact else rule, "exact" if exact else 1.0
        )
        assert (found.covered[rule] == matrices[rule].covered[found.node, found.step]).all()
        assert (found.size[rule] == matrices[rule].size[found.node, found.step]).all()
        assert (found.hit[rule] == (found.covered[rule] & (found.size[rule] == 1))).all()
    # control: the rules do differ on this graph
    assert (found.size["node"] != matrices["naive"].size[found.node, found.step]).any()


def test_true_scores_over_time_give_the_whole_coverage_matrix(world):
    sequence = world.node
    rows = replay(world.network.state_dict(), world.x, sequence, watched=np.arange(NODES))
    found = true_scores_over_time(rows, sequence, world.y, NodeScore(world.u))
    limits = row_thresholds(found[sequence.calibration].T.copy(), ALPHA)
    matrix = coverage_matrix(
        sequence, world.y, scores_over_time(sequence, world.scores), ALPHA, "node"
    )
    judged = matrix.covered >= 0
    assert ((found >= limits)[judged] == matrix.covered[judged].astype(bool)).all()
    assert np.isnan(found[sequence.evaluated, 0]).all()


def test_thresholds_of_rows_are_the_threshold_of_each_row_to_the_bit():
    """Ties of scores, weights whose sums tie with alpha as fractions, too few nodes."""
    rng = np.random.default_rng(1)
    for n in (1, 5, 8, 9, 19, 40):
        scores = rng.integers(0, 12, (200, n)) / 7.0
        weights = 1.0 / rng.integers(1, 4, (200, n))
        own = 1.0 / rng.integers(1, 4, 200)
        plain, heavy = (
            row_thresholds(scores, 0.1),
            row_thresholds(scores, 0.1, weights, np.arange(200), own),
        )
        for row in range(200):
            assert plain[row] == threshold(scores[row], 0.1)
            assert heavy[row] == threshold(scores[row], 0.1, weights[row], own[row])
        if n < 9:
            assert (plain == -np.inf).all()
    # control: the printed rank, ceil(alpha (n + 1)), is another one
    printed = np.sort(scores, axis=1)[:, int(np.ceil(0.1 * 41)) - 1]
    assert (printed != plain).any()


def test_one_row_serves_several_test_weights():
    scores, weights = np.array([[0.1, 0.2, 0.3]]), np.array([[1.0, 1.0, 1.0]])
    found = row_thresholds(scores, 0.5, weights, np.zeros(2, np.int64), np.array([1.0, 0.25]))
    assert found.tolist() == [
        float(threshold(scores[0], 0.5, weights[0], 1.0)),
        float(threshold(scores[0], 0.5, weights[0], 0.25)),
    ]


def test_replay_refuses_other_networks_and_steps_that_never_come(world):
    state = GAT(FEATURES, CLASSES).state_dict()  # has all the names of a GCN, and more
    with pytest.raises(ValueError, match="two-layer GCN"):
        list(replay(state, world.x, world.node, watched=CONTEXT))
    never = Requests(np.array([0]), np.array([world.node.steps + 1]))
    with pytest.raises(ValueError, match="never arrive"):
        list(replay(world.network.state_dict(), world.x, world.node, watched=CONTEXT,
                    requests=never))  # fmt: skip


def test_rows_of_thresholds_must_be_in_order_and_weighted_as_a_whole():
    scores = np.zeros((2, 3))
    with pytest.raises(ValueError, match="back and forth"):
        row_thresholds(scores, 0.1, scores + 1, np.array([1, 0]), np.ones(2))
    with pytest.raises(ValueError, match="both or none"):
        row_thresholds(scores, 0.1, test_weights=np.ones(2))


def test_an_isolated_node_of_a_node_sequence_is_evaluated_when_it_arrives(world):
    alone = replace(
        world.node,
        edges=world.node.edges[:, :0],
        edge_step=world.node.edge_step[:0],
    )
    rows = list(replay(world.network.state_dict(), world.x, alone, watched=np.arange(NODES)))
    nodes = np.concatenate([block.node for block in rows])
    steps = np.concatenate([block.step for block in rows])
    assert len(nodes) == NODES
    assert (steps == alone.node_step[nodes]).all()


@pytest.mark.parametrize("kind", ["node", "edge"])
def test_bands_over_time_are_those_of_a_scoring_run(world, kind):
    """`rule = "auto"` at a step: the same sets as from the degrees of that graph, all at once."""
    sequence = getattr(world, kind)
    nodes = np.flatnonzero(sequence.evaluated & (sequence.node_step <= sequence.steps))
    known, score = sequence.calibration, NodeScore(world.u)
    rows = replay(
        world.network.state_dict(), world.x, sequence, watched=known,
        requests=Requests(nodes, sequence.node_step[nodes]), rows=300,
    )  # fmt: skip
    found = evaluate_requests(rows, known, world.y, score, 0.3, ("auto", "node"), sequence)
    for i in range(0, len(found.node), max(1, len(found.node) // 12)):
        step, node = int(found.step[i]), found.node[i : i + 1]
        logits = world.forward(sequence.edge_index(step))
        degree = sequence.degrees(step)
        there = degree[sequence.node_step <= step]
        result = evaluate(
            NodeScores(
                score.true(logits[known], known, world.y), score.all(logits[node], node),
                np.zeros(len(known)),
            ),
            NodeDegrees(degree[known], degree[node], degree_counts(there)),
            Promise((0.3,), DEGREE_BANDS),
        )  # fmt: skip
        assert result.sets[0].sum() == found.size["auto"][i]
        assert result.thresholds[0].threshold == pytest.approx(found.threshold["auto"][i], abs=1e-9)
    assert (found.threshold["auto"] != found.threshold["node"]).any()
