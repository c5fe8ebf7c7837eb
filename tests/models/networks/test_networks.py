"""Each network against its formula, written out on four nodes with dense matrices."""

from __future__ import annotations

import doctest
import importlib

import pytest
import torch

from ringfence.models.networks import APPNP, GAT, GCN, MLP, NETWORKS, SAGE, build, canonical_edges

ALL = list(NETWORKS)

# A path 0 - 1 - 2 and node 3 alone.
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
ADJACENCY = torch.zeros(4, 4, dtype=torch.float64).index_put_(
    (PATH[1], PATH[0]), torch.ones(4, dtype=torch.float64)
)


def features(nodes=4, width=5, seed=0):
    return torch.randn(
        nodes, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def ready(network):
    return network.double().eval()


def normalised(adjacency):
    looped = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype)
    scale = looped.sum(1).rsqrt()
    return scale[:, None] * looped * scale[None, :]


def test_gcn_is_two_normalised_products():
    network, x, a = ready(build("gcn", 5, 3, seed=1)), features(), normalised(ADJACENCY)
    hidden = (a @ x @ network.conv1.lin.weight.T + network.conv1.bias).relu()
    expected = a @ hidden @ network.conv2.lin.weight.T + network.conv2.bias
    torch.testing.assert_close(network(x, PATH), expected)


def attention(conv, x, adjacency):
    heads, width = conv.att_src.shape[1:]
    values = (x @ conv.lin.weight.T).view(len(x), heads, width)
    source, target = (values * conv.att_src).sum(-1), (values * conv.att_dst).sum(-1)
    energy = torch.nn.functional.leaky_relu(target[:, None] + source[None, :], 0.2)
    hears = (adjacency + torch.eye(len(x), dtype=x.dtype)) > 0
    weights = energy.masked_fill(~hears[:, :, None], -torch.inf).softmax(dim=1)
    return torch.einsum("ijh,jhc->ihc", weights, values).reshape(len(x), -1) + conv.bias


def test_gat_is_two_layers_of_attention_with_eight_heads():
    network, x = ready(build("gat", 5, 3, seed=1)), features()
    assert tuple(network.conv1.att_src.shape) == (1, 8, 8)
    hidden = torch.nn.functional.elu(attention(network.conv1, x, ADJACENCY))
    torch.testing.assert_close(network(x, PATH), attention(network.conv2, hidden, ADJACENCY))


def test_appnp_is_a_perceptron_that_walks_ten_steps():
    network, x, a = ready(build("appnp", 5, 3, seed=1)), features(), normalised(ADJACENCY)
    start = network.lin2(network.lin1(x).relu())
    walked = start
    for _ in range(10):
        walked = 0.9 * a @ walked + 0.1 * start
    torch.testing.assert_close(network(x, PATH), walked)


def test_sage_adds_the_mean_of_the_neighbours_to_the_node_itself():
    network, x = ready(build("sage", 5, 3, seed=1)), features()
    mean = ADJACENCY / ADJACENCY.sum(1, keepdim=True).clamp(min=1)

    def layer(conv, values):
        return conv.lin_l(mean @ values) + conv.lin_r(values)

    expected = layer(network.conv2, layer(network.conv1, x).relu())
    torch.testing.assert_close(network(x, PATH), expected)


def test_mlp_does_not_look_at_the_edges():
    network, x = ready(build("mlp", 5, 3, seed=1)), features()
    torch.testing.assert_close(network(x, PATH), network.lin2(network.lin1(x).relu()))
    assert torch.equal(network(x, PATH), network(x, PATH[:, :0]))


@pytest.mark.parametrize(
    ("network", "dropout"), [(GCN, 0.6), (GAT, 0.6), (APPNP, 0.5), (SAGE, 0.5), (MLP, 0.8)]
)
def test_defaults_are_the_papers(network, dropout):
    built = network(5, 3)
    assert built.dropout == dropout
    first = next(iter(built.parameters()))
    assert 64 in first.shape or built.conv1.lin.weight.shape[0] == 64


@pytest.mark.parametrize("name", ALL)
def test_dropout_acts_in_training_only(name):
    network, x = build(name, 5, 3), features().float()
    assert torch.equal(network.eval()(x, PATH), network(x, PATH))
    torch.manual_seed(0)
    assert not torch.equal(network.train()(x, PATH), network(x, PATH))


@pytest.mark.parametrize("name", ALL)
def test_relabelling_the_nodes_relabels_the_logits(name):
    network, x = ready(build(name, 5, 3)), features(30, seed=2)
    edges = canonical_edges(torch.randint(30, (2, 80)), 30)
    order = torch.randperm(30)
    place = torch.argsort(order)
    torch.testing.assert_close(network(x[order], place[edges]), network(x, edges)[order])


@pytest.mark.parametrize("name", ALL)
def test_a_graph_without_edges_or_nodes_has_logits(name):
    network, none = ready(build(name, 5, 3)), torch.empty(2, 0, dtype=torch.int64)
    assert torch.isfinite(network(features(2), none)).all()
    assert tuple(network(features(0), none).shape) == (0, 3)


@pytest.mark.parametrize("name", ["gcn", "gat", "appnp", "sage"])
def test_parallel_edges_and_loops_matter_to_a_network_unless_made_canonical(name):
    network, x = ready(build(name, 5, 3)), features()
    messy = torch.cat([PATH, torch.tensor([[0, 2, 2], [1, 1, 2]])], dim=1)
    torch.testing.assert_close(network(x, canonical_edges(messy, 4)), network(x, PATH))
    assert not torch.allclose(network(x, messy), network(x, PATH))


def test_canonical_edges_do_not_depend_on_order_direction_or_repetition():
    edges = torch.randint(50, (2, 200), generator=torch.Generator().manual_seed(3))
    shuffled = edges[:, torch.randperm(200)]
    shuffled = torch.cat([shuffled.flip(0), shuffled[:, :20]], dim=1)
    assert torch.equal(canonical_edges(edges, 50), canonical_edges(shuffled, 50))
    assert not torch.equal(
        canonical_edges(edges, 50, undirected=False), canonical_edges(edges.flip(0), 50, False)
    )


def test_canonical_edges_are_sorted_by_target_and_stand_in_both_directions():
    edges = canonical_edges(torch.tensor([[4, 4, 0, 2], [0, 0, 4, 2]], dtype=torch.int32), 5)
    assert edges.tolist() == [[4, 0], [0, 4]]
    assert edges.dtype == torch.int64
    assert edges.is_contiguous()


def test_canonical_edges_keep_direction_where_it_counts():
    edges = canonical_edges(torch.tensor([[0, 0, 1], [1, 1, 1]]), 2, undirected=False)
    assert edges.tolist() == [[0], [1]]


def test_canonical_edges_of_nothing_are_nothing():
    assert canonical_edges(torch.empty(2, 0, dtype=torch.int64), 0).shape == (2, 0)


def test_canonical_edges_work_past_32_bits():
    far = 3_000_000_000
    edges = canonical_edges(torch.tensor([[0], [far - 1]]), far)
    assert edges.tolist() == [[far - 1, 0], [0, far - 1]]


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (torch.tensor([[0], [4]]), "node 0 to 4, but there are 4 nodes"),
        (torch.tensor([[-1], [1]]), "node -1 to 1"),
        (torch.zeros(2, 1), "integers of shape"),
        (torch.zeros(3, 1, dtype=torch.int64), "shape .3, 1."),
    ],
)
def test_edges_that_cannot_be_read_are_refused_with_words(edges, words):
    with pytest.raises(ValueError, match=words):
        canonical_edges(edges, 4)


def test_the_same_seed_builds_the_same_weights_and_keeps_the_global_generator():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, two, other = (build("gcn", 5, 3, seed=s).conv1.lin.weight for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_an_unknown_network_or_option_is_answered_with_those_that_exist():
    with pytest.raises(ValueError, match="'gnc'; there are gcn, gat, appnp, sage, mlp"):
        build("gnc", 5, 3)
    with pytest.raises(ValueError, match="gcn has no option heads; it takes hidden, dropout"):
        build("gcn", 5, 3, heads=4)
    with pytest.raises(ValueError, match="choose a multiple, such as hidden=60"):
        build("gat", 5, 3, hidden=64, heads=6)


@pytest.mark.parametrize(
    "module",
    [
        *(
            "networks.custom",
            "networks.edges",
            "guarantee.evaluation_policy",
            "training.loop",
            "training.sampling",
        ),
        *("seeding", "sequences.sequence", "sequences.subgraphs", "training.train"),
        *(f"networks.{name}" for name in [*ALL, "registry"]),
    ],
)
def test_the_examples_in_the_docstrings_run(module):
    result = doctest.testmod(importlib.import_module(f"ringfence.models.{module}"))
    assert result.failed == 0
