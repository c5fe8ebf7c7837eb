"""A pass over partitions has the bits of the undivided one, whoever owns which row."""

import doctest
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.jobs.engines.table_pass import PartitionedTablePass
from ringfence.models.inference import InNeighbours, forward_whole, graph_of
from ringfence.models.inference.partition import TablePart, lists, ownership, staleness
from ringfence.models.inference.partition.ownership import divide, extend, measure_cut
from tests.jobs.engines.hosts import HereWorkers
from tests.models.inference.histories import ALL, EVENTS, PLANS, WIDTH, History

DENSE = np.stack([np.repeat(np.arange(200), 30), np.random.default_rng(3).integers(0, 200, 6_000)])


def differing_bits(name, events, seed, parts):
    """After each event: how many numbers differ from those of a whole pass; owners are shuffled."""
    history, rng = History(seed), np.random.default_rng(seed)
    owners = np.empty(0, np.int16)
    with tempfile.TemporaryDirectory() as folder:
        workers, found = HereWorkers(Path(folder), parts), []
        for event in [None, *events]:
            if event is not None:
                history.event(*event)
            graph = history.graph()
            joined = rng.integers(0, parts, graph.size - len(owners)).astype(np.int16)
            owners = np.concatenate([owners, joined])
            wanted = rng.choice(history.alive, 4)  # one may be wanted twice
            one = PartitionedTablePass(workers, "v", PLANS[name], graph, history.features, owners)
            whole = forward_whole(PLANS[name], graph, history.features)[wanted]
            found.append(int((one.run(wanted).view(np.int32) != whole.view(np.int32)).sum()))
            workers.close_states(graph.version)
        return found


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=6, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100), parts=st.integers(1, 4))
def test_after_every_step_of_a_history_the_bits_are_those_of_a_whole_pass(
    name, events, seed, parts
):
    assert sum(differing_bits(name, events, seed, parts)) == 0


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_without_the_mark_of_a_change_the_outputs_would_be_wrong(name, monkeypatch):
    """A control: forget what changed, and the test above fails."""
    monkeypatch.setattr(
        "ringfence.jobs.engines.table_pass.newest_inputs",
        lambda _plan, _graph, rows: np.full(len(rows), -1, np.int64),
    )
    links = [("link", a, b) for a, b in zip(range(12), range(3, 15), strict=True)]
    assert sum(differing_bits(name, links, 1, 2)) > 0


def dense_outputs(folder, name, owners):
    graph = graph_of(DENSE, 200)
    features = np.random.default_rng(4).standard_normal((200, WIDTH), dtype=np.float32)
    workers = HereWorkers(folder, int(owners.max()) + 1)
    one = PartitionedTablePass(workers, "v", PLANS[name], graph, features, owners)
    return one.run(np.arange(200)), forward_whole(PLANS[name], graph, features)


@pytest.mark.parametrize("name", ALL)
def test_long_lists_add_up_in_one_order_however_rows_are_divided(tmp_path, name):
    rng = np.random.default_rng(7)
    for turn in range(3):
        owners = rng.integers(0, turn + 2, 200).astype(np.int16)
        found, whole = dense_outputs(tmp_path / str(turn), name, owners)
        assert np.array_equal(found.view(np.int32), whole.view(np.int32))


@pytest.mark.parametrize("name", ["sage", "gat", "appnp"])
def test_lists_in_another_order_would_show(tmp_path, name, monkeypatch):
    """The negative control: the same numbers added the other way round have other bits."""
    local = TablePart._local

    def backwards(self, near):
        found = local(self, near)
        turned = [part[::-1] for part in np.split(found.sources, found.offsets[1:-1])]
        return InNeighbours(found.rows, found.offsets, np.concatenate(turned))

    monkeypatch.setattr(TablePart, "_local", backwards)
    found, whole = dense_outputs(tmp_path, name, divide(graph_of(DENSE, 200), 2))
    assert not np.array_equal(found, whole)
    assert np.allclose(found, whole, atol=1e-4)


def test_only_partitions_that_are_needed_are_asked(tmp_path):
    """Two rings that nothing joins: a change in one asks nothing of the other's owner."""
    ring = np.stack([np.arange(50), (np.arange(50) + 1) % 50])
    both = np.hstack([ring, ring + 50])
    owners = np.repeat(np.array([0, 1], np.int16), 50)
    features = np.random.default_rng(4).standard_normal((100, WIDTH), dtype=np.float32)
    workers = HereWorkers(tmp_path, 2)
    first = PartitionedTablePass(workers, "v", PLANS["gcn"], graph_of(both, 100), features, owners)
    first.run(np.arange(100))
    workers.close_states(0)
    workers.calls.clear()
    changed = np.zeros(100, np.int64)
    changed[[3, 9]] = 1
    graph = graph_of(np.hstack([both, [[3], [9]]]), 100, changed=changed, version=1)
    one = PartitionedTablePass(workers, "v", PLANS["gcn"], graph, features, owners)
    found = one.run(np.array([3]))
    assert np.array_equal(found, forward_whole(PLANS["gcn"], graph, features)[[3]])
    assert {method for number, method in workers.calls if number == 1} == {"open", "update", "seal"}
    assert (one.sent, one.exchanged, one.filled) == (2, 0, 0)
    assert 0 < one.computed <= 4  # the ends and their neighbours that are needed


def test_a_division_keeps_communities_together_and_new_rows_join_their_neighbours():
    rng = np.random.default_rng(5)
    group = rng.permutation(np.repeat(np.arange(4), 250))
    ends = rng.integers(0, 1_000, (2, 40_000))
    inside = ends[:, group[ends[0]] == group[ends[1]]]
    graph = graph_of(inside, 1_000)
    owners = divide(graph, 4)
    cut, random = measure_cut(graph, owners, 4), measure_cut(graph, (group * 7 % 3).astype("i2"), 4)
    assert cut.balance <= 1.06
    assert cut.share < 0.5 < measure_cut(graph, rng.integers(0, 4, 1_000).astype("i2"), 4).share
    assert sum(cut.rows) == 1_000
    assert sum(random.entries) == sum(cut.entries)
    grown = graph_of(np.hstack([inside, [[1_000], [5]]]), 1_001)
    assert extend(grown, owners, 4)[1_000] == owners[5]
    assert extend(grown, owners, 4)[:1_000].tolist() == owners.tolist()


@pytest.mark.parametrize("module", [lists, ownership, staleness])
def test_the_examples_in_the_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0
