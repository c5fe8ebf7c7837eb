"""Training on typed graphs: equal bits in any order of reading, and nothing from the future."""

import dataclasses

import numpy as np
import pytest
import torch

from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.training import typed_blocks
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train
from ringfence.models.training.typed_blocks import sample_typed_block, timed_graph
from ringfence.models.training.typed_data import ALWAYS, select_typed

SCHEMA = TypedSchema(("Case", "Clerk"), (Relation(0, "OPENED_BY", 1), Relation(1, "CLOSED", 0)))


def make(seed=0, cases=300, clerks=20, order=None):
    """Cases with the class of their clerk; `order` is how rows were read."""
    rng = np.random.default_rng(seed)
    size = cases + clerks
    opened = rng.integers(0, clerks, cases)
    column = rng.normal(size=(clerks, 2)).astype(np.float32)
    y = (column[opened, 0] > 0).astype(np.int64)
    noise = rng.normal(size=(cases, 3)).astype(np.float32)
    rows = np.arange(size) if order is None else order  # row of each node, by its key
    edges = np.stack([rows[:cases], rows[cases:][opened], np.zeros(cases, np.int64)])
    if order is not None:
        edges = edges[:, rng.permutation(cases)]
    data = select_typed(
        SCHEMA, (noise, column), edges, (rows[:cases], rows[cases:]), size,
        node_times=_by_row(rows, np.concatenate([np.arange(cases), np.full(clerks, ALWAYS)])),
    )  # fmt: skip
    return data, torch.from_numpy(y)


def _by_row(rows, values):
    out = np.empty(len(rows), np.int64)
    out[rows] = values
    return out


FULL_PASSES, BATCHES = {}, {"batch_size": 512, "fanouts": (10, 10)}


def fit(data, y, how=FULL_PASSES, epochs=30):
    network = build_typed("typed_sage", SCHEMA, (3, 2), 2, hidden=8, layers=1, dropout=0.0)
    places = torch.arange(data.classified)
    options = TrainingOptions(seed=5, max_epochs=epochs, learning_rate=0.1, **how)
    return train(network, data, TrainingTargets(y, places[::2], places[1::2]), options)


def same(one, two):
    return all(torch.equal(one.state[name], two.state[name]) for name in one.state)


@pytest.mark.parametrize("how", [FULL_PASSES, BATCHES])
def test_the_order_of_reading_changes_no_weight(how):
    plain, y = make()
    shuffled, _ = make(order=np.random.default_rng(9).permutation(320))
    assert same(fit(plain, y, how, 5), fit(shuffled, y, how, 5))


@pytest.mark.parametrize("how", [FULL_PASSES, BATCHES])
def test_a_class_that_stands_at_the_context_is_learnt(how):
    data, y = make()
    assert fit(data, y, how, 80).validation_accuracy > 0.9
    alone = dataclasses.replace(data, edges=tuple(pair[:, :0] for pair in data.edges))
    alone = dataclasses.replace(
        alone, times=dataclasses.replace(data.times, edges=(np.empty(0, np.int64),) * 4)
    )
    assert fit(alone, y, how, 80).validation_accuracy < 0.7


def leak(seed=1, cases=400):
    """Each case is closed later, by clerk 0 or 1 according to its class: that must not be seen."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, cases)
    times = rng.permutation(cases) * 10  # rows are not in the order of time
    closed = rng.permutation(cases)  # nor are relationships
    edges = np.stack([cases + y[closed], closed, np.ones(cases, np.int64)])
    node_times = np.concatenate([times, [ALWAYS, ALWAYS]])
    features = (
        rng.normal(size=(cases, 3)).astype(np.float32),
        np.array([[3.0, 0.0], [0.0, 3.0]], np.float32),
    )
    data = select_typed(
        SCHEMA, features, edges, (np.arange(cases), np.arange(cases, cases + 2)), cases + 2,
        node_times=node_times, edge_times=times[closed] + 5,
    )  # fmt: skip
    return data, torch.from_numpy(y)


def test_a_relationship_of_the_future_is_not_learnt_from():
    data, y = leak()
    assert fit(data, y, BATCHES, 15).validation_accuracy < 0.65


def test_without_its_time_the_same_relationship_gives_the_class_away():
    """The negative control: the leak is there to be found."""
    data, y = leak()
    timeless = dataclasses.replace(
        data.times, edges=tuple(np.full(len(times), ALWAYS) for times in data.times.edges)
    )
    leaking = dataclasses.replace(data, times=timeless)
    assert fit(leaking, y, BATCHES, 15).validation_accuracy > 0.95


def test_times_that_are_not_sorted_along_with_the_edges_are_noticed(monkeypatch):
    """The negative control of pyg-team/pytorch_geometric#7794: times in the order of input."""
    data, _ = leak()
    assert latest(data, timed_graph(data)) <= 0
    sound = typed_blocks.TimedNeighbours
    monkeypatch.setattr(
        typed_blocks,
        "TimedNeighbours",
        lambda offsets, sources, times: sound(offsets, sources, np.roll(times, 7)),
    )
    assert latest(data, timed_graph(data)) > 0


def latest(data, graph, fanouts=(5, 5)):
    """How much later than its seed the latest thing in any block is."""
    known = [
        {(int(a), int(b)): int(t) for a, b, t in zip(*pair, times, strict=True)}
        for pair, times in zip(data.edges, data.times.edges, strict=True)
    ]
    worst = -(10**9)
    for start in range(0, data.classified, 50):
        seeds = np.arange(start, min(start + 50, data.classified))
        block = sample_typed_block(graph, seeds, fanouts, np.random.default_rng(start))
        limit = data.times.nodes[0][seeds]
        for label, places in enumerate(block.places):
            late = data.times.nodes[label][places] > limit[block.seed_of[label]]
            worst = max(worst, *(np.where(late, 1, 0).tolist() or [0]))
        for number, channel in enumerate(SCHEMA.channels):
            for a, b in block.edges[number].T:
                source = int(block.places[channel.source][a])
                target = int(block.places[channel.target][b])
                seed = block.seed_of[channel.target][b]
                assert seed == block.seed_of[channel.source][a]
                worst = max(worst, known[number][source, target] - int(limit[seed]))
    return worst


@pytest.mark.parametrize("seed", range(6))
def test_nothing_in_a_block_is_later_than_its_seed(seed):
    rng = np.random.default_rng(seed)
    cases, clerks, count = 120, 15, 700
    rows = (np.arange(cases), np.arange(cases, cases + clerks))
    case, clerk = rng.integers(0, cases, count), rng.integers(cases, cases + clerks, count)
    kind = rng.integers(0, 2, count)
    edges = np.unique(np.where(kind, np.stack([clerk, case, kind]),
                               np.stack([case, clerk, kind])), axis=1)  # fmt: skip
    data = select_typed(
        SCHEMA, (np.zeros((cases, 3), np.float32), np.zeros((clerks, 2), np.float32)), edges, rows,
        cases + clerks, node_times=rng.integers(0, 100, cases + clerks),
        edge_times=rng.integers(0, 100, edges.shape[1]),
    )  # fmt: skip
    assert latest(data, timed_graph(data)) <= 0


def test_a_block_without_limits_is_the_whole_neighbourhood():
    """Where times forbid and fanouts cut nothing, logits are those of the graph."""
    data, _ = make(cases=60, clerks=5)
    times = dataclasses.replace(
        data.times, nodes=tuple(np.zeros(len(one), np.int64) for one in data.times.nodes)
    )
    data = dataclasses.replace(data, times=times)
    network = build_typed("typed_sage", SCHEMA, (3, 2), 2, hidden=8, layers=2).eval()
    seeds = np.array([3, 7, 50])
    block = sample_typed_block(timed_graph(data), seeds, (1000, 1000), np.random.default_rng(0))
    x = {
        label: torch.from_numpy(data.features[number][block.places[number]])
        for number, label in enumerate(SCHEMA.labels)
    }
    edges = {
        kind: torch.from_numpy(pair)
        for kind, pair in zip(SCHEMA.edge_types, block.edges, strict=True)
    }
    whole = network(*data.tensors())
    torch.testing.assert_close(network(x, edges)[:3], whole[seeds], rtol=1e-4, atol=1e-5)


def test_columns_later_than_the_seed_are_blank():
    data, _ = make(cases=40, clerks=4)
    late = dataclasses.replace(data.times, columns=(data.times.columns[0], np.full(4, 20)))
    blank = (np.zeros(3, np.float32), np.full(2, 7, np.float32))
    data = dataclasses.replace(data, times=late, blank=blank)
    block = sample_typed_block(timed_graph(data), np.array([5, 30]), (3, 3),
                               np.random.default_rng(0))  # fmt: skip
    limit = np.array([5, 30])[block.seed_of[1]]
    assert block.blank[1].tolist() == (limit < 20).tolist()
    assert block.blank[1].any()
    assert not block.blank[1].all()


def test_splits_that_cannot_be_trained_on_are_refused():
    data, y = make(cases=10, clerks=2)
    network, options = build_typed("typed_sage", SCHEMA, (3, 2), 2), TrainingOptions(seed=0)

    def train_on(*parts, y=y):
        train(network, data, TrainingTargets(y, *parts), options)

    with pytest.raises(ValueError, match="0 validation"):
        train_on(torch.arange(5), torch.arange(0))
    with pytest.raises(ValueError, match="both train and validation"):
        train_on(torch.arange(5), torch.arange(5))
    with pytest.raises(ValueError, match="classes 2 to 2, but the network has 2 outputs"):
        train_on(torch.arange(5), torch.arange(5, 10), y=torch.full((10,), 2))
