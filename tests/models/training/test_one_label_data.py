"""Training on a graph of one label in batches of sampled neighbourhoods."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from ringfence.models.networks import build, canonical_edges
from ringfence.models.training.sampling import neighbours_of, sample_block
from tests.models.training.test_train import train

NODES, CLASSES = 1200, 3


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def graph():
    """A block model with weak features: what the neighbours say is most of what can be known."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(NODES) % CLASSES)
    likely = np.where(y[:, None] == y[None, :], 20 / NODES, 3 / NODES)
    edges = np.stack(np.nonzero(np.triu(rng.random((NODES, NODES)) < likely, 1)))
    x = rng.normal(size=(NODES, 8)) + 0.7 * np.eye(CLASSES, 8)[y]
    return (
        torch.tensor(x, dtype=torch.float32),
        canonical_edges(torch.tensor(edges), NODES),
        torch.tensor(y),
    )


@pytest.fixture(scope="module")
def split():
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
    return order[:300], order[300:500], order[500:]


def accuracy(network, trained, graph, nodes):
    x, edge_index, y = graph
    network.load_state_dict(trained.state)
    with torch.no_grad():
        return (network.eval()(x, edge_index).argmax(1) == y)[nodes].double().mean().item()


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_batches_learn_about_what_full_passes_learn(name, graph, split):
    *parts, rest = split
    options = {"seed": 3, "max_epochs": 40, "learning_rate": 0.01}
    network = build(name, 8, CLASSES)
    full = accuracy(network, train(network, *graph, *parts, **options), graph, rest)
    batched = train(network, *graph, *parts, batch_size=64, fanouts=(5, 5), **options)
    deaf = train(network, *graph, *parts, batch_size=64, fanouts=(0,), **options)
    assert full > 0.8
    assert accuracy(network, batched, graph, rest) > full - 0.05
    assert accuracy(network, deaf, graph, rest) < full - 0.05  # no neighbours: the test can fail


def test_batches_repeat_to_the_bit_and_leave_the_global_generator(graph, split):
    *parts, _ = split
    options = {"batch_size": 100, "fanouts": (3, 3), "max_epochs": 3}
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    network = build("gcn", 8, CLASSES)
    one, two, other = (train(network, *graph, *parts, seed=seed, **options) for seed in (7, 7, 8))
    assert torch.equal(torch.rand(1), expected)
    assert one.curves == two.curves
    assert all(torch.equal(one.state[name], two.state[name]) for name in one.state)
    assert one.curves != other.curves


def test_one_batch_of_whole_neighbourhoods_is_a_full_pass(graph, split):
    train_nodes, validation_nodes, _ = split
    options = {"seed": 7, "max_epochs": 4, "class_weights": True}
    network = build("sage", 8, CLASSES, dropout=0.0)
    full = train(network, *graph, train_nodes, validation_nodes, **options)
    batched = train(network, *graph, train_nodes, validation_nodes,
                               batch_size=1000, fanouts=(None, None), **options)  # fmt: skip
    assert batched.curves.train_loss == pytest.approx(full.curves.train_loss, rel=1e-5)
    assert batched.curves.validation_loss == pytest.approx(full.curves.validation_loss, rel=1e-5)
    assert batched.curves.validation_accuracy == full.curves.validation_accuracy


@pytest.mark.parametrize(("name", "hops"), [("sage", 2), ("gat", 2), ("gcn", 3), ("mlp", 0)])
def test_a_block_of_whole_neighbourhoods_gives_the_logits_of_the_whole_graph(name, hops, graph):
    x, edge_index, _ = graph
    network, seeds = build(name, 8, CLASSES).eval(), np.array([5, 999, 17])
    block = sample_block(
        neighbours_of(edge_index.numpy(), NODES), seeds, [None] * hops, np.random.default_rng(0)
    )
    with torch.no_grad():
        logits = network(x[block.nodes], torch.from_numpy(block.edge_index))[: block.seeds]
        torch.testing.assert_close(logits, network(x, edge_index)[seeds], rtol=1e-5, atol=1e-6)


def test_a_block_holds_edges_of_the_graph_no_more_than_asked_and_none_twice(graph):
    _, edge_index, _ = graph
    known = set(map(tuple, edge_index.T.tolist()))
    degree = np.bincount(edge_index[1].numpy(), minlength=NODES)
    rng = np.random.default_rng(0)
    around = neighbours_of(edge_index.numpy(), NODES)
    for _ in range(20):
        seeds = rng.choice(NODES, 10, replace=False)
        block = sample_block(around, seeds, (4, 2), rng)
        edges = block.nodes[block.edge_index]
        pairs = set(map(tuple, edges.T.tolist()))
        assert len(pairs) == edges.shape[1]
        assert pairs <= known
        assert len(set(block.nodes.tolist())) == len(block.nodes)
        assert block.nodes[:10].tolist() == seeds.tolist()
        heard = np.bincount(edges[1], minlength=NODES)
        assert heard[seeds].tolist() == np.minimum(degree[seeds], 4).tolist()
        assert heard[np.setdiff1d(np.arange(NODES), seeds)].max() <= 2


def test_neighbours_are_drawn_uniformly_without_replacement():
    """All 10 pairs of 5 neighbours equally likely: chi-square at a false-alarm rate of 1e-4."""
    star = neighbours_of(np.stack([np.arange(1, 6), np.zeros(5, dtype=int)]), 6)
    rng, pairs = np.random.default_rng(2), {}
    for _ in range(4000):
        block = sample_block(star, np.array([0]), (2,), rng)
        pair = tuple(sorted(block.nodes[1:].tolist()))
        pairs[pair] = pairs.get(pair, 0) + 1
    assert all(len(set(pair)) == 2 for pair in pairs)
    statistic = sum((count - 400) ** 2 / 400 for count in pairs.values()) + 400 * (10 - len(pairs))
    assert statistic < chi2(9).isf(1e-4)


def test_a_node_without_neighbours_is_a_block_of_its_own():
    alone = neighbours_of(np.empty((2, 0), dtype=np.int64), 3)
    block = sample_block(alone, np.array([2, 0]), (5, None), np.random.default_rng(0))
    assert block.nodes.tolist() == [2, 0]
    assert block.edge_index.shape == (2, 0)
