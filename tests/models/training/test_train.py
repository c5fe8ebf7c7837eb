"""Training is repeatable to the bit, stops where it should, and leaves its arguments alone."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from ringfence.models.networks import MLP, NETWORKS, build, canonical_edges
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.seeding import seeded
from ringfence.models.training import train as training
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@dataclasses.dataclass(frozen=True)
class Sample:
    x: torch.Tensor
    edge_index: torch.Tensor
    y: torch.Tensor
    train_nodes: torch.Tensor
    validation_nodes: torch.Tensor
    rest: torch.Tensor

    def given(self):
        return self.x, self.edge_index, self.y, self.train_nodes, self.validation_nodes

    def accuracy(self, network, trained):
        network.load_state_dict(trained.state)
        with torch.no_grad():
            predicted = network.eval()(self.x, self.edge_index).argmax(1)
        return (predicted == self.y)[self.rest].double().mean().item()


def train(network, x, edge_index, y, train_nodes, validation_nodes, on_epoch=None, **options):
    targets = TrainingTargets(y, train_nodes, validation_nodes)
    graph = OneLabelData(x, edge_index)
    return training.train(network, graph, targets, TrainingOptions(**options), on_epoch)


def block_model(nodes=300, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(nodes) % classes)
    likely = np.where(y[:, None] == y[None, :], 12 / nodes, 2 / nodes)
    source, target = np.nonzero(np.triu(rng.random((nodes, nodes)) < likely, 1))
    x = rng.normal(size=(nodes, 8)) + np.eye(classes, 8)[y]
    order = rng.permutation(nodes)
    return Sample(
        torch.tensor(x, dtype=torch.float32),
        canonical_edges(torch.tensor(np.stack([source, target])), nodes),
        torch.tensor(y),
        *(torch.tensor(part) for part in np.split(order, [60, 120])),
    )


@pytest.fixture(scope="module")
def sample():
    return block_model()


def same_bits(one, two):
    return all(torch.equal(one.state[name], two.state[name]) for name in one.state)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_every_network_learns_and_repeats_to_the_bit(name, sample):
    network = build(name, 8, 3, seed=4)
    one = train(network, *sample.given(), seed=11, max_epochs=60, learning_rate=0.01)
    torch.manual_seed(123)  # the global generator must not matter
    two = train(build(name, 8, 3, seed=5), *sample.given(), seed=11, max_epochs=60,
                learning_rate=0.01)  # fmt: skip
    assert one.curves == two.curves
    assert same_bits(one, two)
    assert sample.accuracy(network, one) > (0.5 if name == "mlp" else 0.7)


def test_another_seed_trains_another_network(sample):
    network = build("gcn", 8, 3)
    one, two = (train(network, *sample.given(), seed=s, max_epochs=3) for s in (1, 2))
    assert not same_bits(one, two)


def test_the_callers_network_and_the_global_generator_are_left_as_they_were(sample):
    network = build("gcn", 8, 3).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    train(network, *sample.given(), seed=1, max_epochs=3)
    assert torch.equal(torch.rand(1), expected)
    assert network.training
    assert all(torch.equal(before[n], v) for n, v in network.state_dict().items())


def test_training_stops_after_patience_and_returns_the_best_epoch(sample):
    seen = []
    options = {"learning_rate": 0.05, "weight_decay": 0.0, "max_epochs": 500, "patience": 10}
    trained = train(build("gcn", 8, 3), *sample.given(), seed=1, on_epoch=seen.append, **options)
    losses = trained.curves.validation_loss
    assert trained.stopped_early
    assert trained.best_epoch == int(np.argmin(losses)) == trained.epochs - 1 - 10
    assert [epoch.number for epoch in seen] == list(range(trained.epochs))
    assert tuple(epoch.validation_loss for epoch in seen) == losses
    network = build("gcn", 8, 3)
    network.load_state_dict(trained.state)
    logits = network.eval()(sample.x, sample.edge_index)[sample.validation_nodes]
    truth = sample.y[sample.validation_nodes]
    assert torch.nn.functional.cross_entropy(logits, truth).item() == losses[trained.best_epoch]
    assert (logits.argmax(1) == truth).double().mean().item() == trained.validation_accuracy


def test_more_epochs_do_not_change_the_past(sample):
    short, long = (train(build("gcn", 8, 3), *sample.given(), seed=1, max_epochs=n) for n in (5, 9))
    assert long.curves.train_loss[:5] == short.curves.train_loss
    assert not short.stopped_early


@pytest.mark.parametrize(
    ("name", "learning_rate", "weight_decay"),
    [("gcn", 1e-3, 1e-2), ("gat", 1e-2, 1e-2), ("appnp", 1e-2, 1e-4), ("mlp", 5e-3, 1e-2)],
)
def test_each_network_brings_its_own_learning_rate(name, learning_rate, weight_decay, sample):
    recipe = train(build(name, 8, 3), *sample.given(), seed=1, max_epochs=1).recipe
    assert (recipe.learning_rate, recipe.weight_decay) == (learning_rate, weight_decay)


def test_class_weights_balance_a_rare_class(sample):
    rare = sample.train_nodes[(sample.y[sample.train_nodes] != 2)]
    few = torch.cat([rare, sample.train_nodes[sample.y[sample.train_nodes] == 2][:2]])
    given = (sample.x, sample.edge_index, sample.y, few, sample.validation_nodes)
    network = build("gcn", 8, 3)
    found = {}
    for weighted in (False, True):
        trained = train(network, *given, seed=1, max_epochs=80, learning_rate=0.01,
                        class_weights=weighted)  # fmt: skip
        network.load_state_dict(trained.state)
        predicted = network.eval()(sample.x, sample.edge_index).argmax(1)
        found[weighted] = int((predicted[sample.rest] == 2).sum())
    counts = torch.bincount(sample.y[few], minlength=3).double()
    assert trained.recipe.class_weights == pytest.approx((len(few) / (3 * counts)).tolist())
    assert found[True] > found[False]


def test_class_weights_allow_a_class_without_train_nodes(sample):
    keep = sample.train_nodes[sample.y[sample.train_nodes] != 2]
    trained = train(build("gcn", 8, 4), sample.x, sample.edge_index, sample.y, keep,
                    sample.validation_nodes, seed=1, max_epochs=2, class_weights=True)  # fmt: skip
    assert len(trained.recipe.class_weights) == 4


def test_a_network_without_reset_starts_from_the_weights_it_has(sample):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(8, 3))

        def forward(self, x, edge_index):
            return x @ self.weight

    one, two = (train(Own(), *sample.given(), seed=s, max_epochs=2) for s in (1, 2))
    assert same_bits(one, two)
    assert one.recipe.learning_rate == 0.01


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train_nodes": torch.empty(0, dtype=torch.int64)}, "0 train and 60 validation nodes"),
        ({"validation_nodes": torch.empty(0, dtype=torch.int64)}, "60 train and 0 validation"),
        ({"validation_nodes": torch.arange(300)}, "60 nodes are both train and validation"),
        ({"y": torch.full((300,), -1)}, "classes -1 to -1, but the network has 3 outputs"),
        ({"y": torch.full((300,), 3)}, "classes 3 to 3, but the network has 3 outputs"),
        ({"x": torch.full((300, 8), torch.nan)}, "training diverged in epoch 0"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_words(change, words, sample):
    with pytest.raises(ValueError, match=words):
        train(MLP(8, 3), *dataclasses.replace(sample, **change).given(), seed=1)


@pytest.mark.parametrize(
    "options", [{"max_epochs": 0}, {"patience": 0}, {"learning_rate": 0.0}, {"weight_decay": -1.0}]
)
def test_settings_out_of_range_are_refused(options, sample):
    with pytest.raises(ValueError, match="must be"):
        train(MLP(8, 3), *sample.given(), seed=1, **options)


def train_by_hand(network, data, targets, learning_rate, epochs):
    """The loop written out: no sampler, no protocol; the state of the lowest validation loss."""
    cross_entropy, losses, states = torch.nn.functional.cross_entropy, [], []
    with seeded(7):
        model = copy.deepcopy(network)
        model.reset_parameters()
        optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate, weight_decay=0.01)
        for _ in range(epochs):
            model.train()
            optimiser.zero_grad()
            logits = model(*data.tensors_for(network))
            cross_entropy(logits[targets.train], targets.y[targets.train]).backward()
            optimiser.step()
            with torch.no_grad():
                logits = model.eval()(*data.tensors_for(network))[targets.validation]
            losses.append(cross_entropy(logits, targets.y[targets.validation]).item())
            states.append({name: value.clone() for name, value in model.state_dict().items()})
    return states[int(np.argmin(losses))], losses


def one_label():
    sample = block_model()
    targets = TrainingTargets(sample.y, sample.train_nodes, sample.validation_nodes)
    return build("gcn", 8, 3), OneLabelData(sample.x, sample.edge_index), targets


def several_labels():
    from tests.models.training.test_typed_data import SCHEMA, make

    (data, y), places = make(), torch.arange(300)
    network = build_typed("typed_sage", SCHEMA, (3, 2), 2, hidden=8)
    return network, data, TrainingTargets(y, places[::2], places[1::2])


@pytest.mark.parametrize("family", [one_label, several_labels])
def test_both_families_are_trained_by_the_same_loop_to_the_bit(family):
    network, data, targets = family()
    options = TrainingOptions(seed=7, learning_rate=0.02, weight_decay=0.01, max_epochs=12)
    trained = training.train(network, data, targets, options)
    state, losses = train_by_hand(network, data, targets, 0.02, 12)
    assert trained.curves.validation_loss == tuple(losses)
    assert all(torch.equal(trained.state[name], state[name]) for name in state)
    other, _ = train_by_hand(network, data, targets, 0.03, 12)  # the control: it can differ
    assert not all(torch.equal(trained.state[name], other[name]) for name in other)
