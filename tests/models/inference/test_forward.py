"""The incremental forward pass equals the full one, after every step of any history."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.conformal.evaluate import degrees
from ringfence.models.inference import (
    Cost,
    empty_tables,
    forward,
    forward_whole,
    graph_of,
    in_neighbours,
    plan_of,
)
from ringfence.models.inference.graph import neighbour_counts
from ringfence.models.networks import canonical_edges
from tests.models.inference.histories import (
    ALL,
    EVENTS,
    LINKS,
    PLANS,
    WIDTH,
    History,
    differences,
    network_of,
)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100))
def test_after_every_step_the_outputs_are_those_of_a_full_pass(name, events, seed):
    ours, reference = differences(name, events, seed)
    assert max(ours) == 0.0  # the same kernels on the same rows: the same bits
    assert max(reference) < 1e-5


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_without_the_mark_of_a_change_the_outputs_would_be_wrong(name, monkeypatch):
    """A control: forget which nodes changed, and the test above fails."""

    def link(self, a, b):
        self.relationships.append((int(a), int(b), 0))

    monkeypatch.setattr(History, "link", link)
    ours, _ = differences(name, LINKS, seed=1)
    assert max(ours) > 1e-3


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "mlp"])
def test_a_row_is_computed_again_only_where_something_changed(name):
    rng = np.random.default_rng(0)
    n = 400
    features = rng.standard_normal((n, WIDTH), dtype=np.float32)
    relationships = np.stack([np.arange(n), (np.arange(n) + 1) % n])  # a ring
    tables, wanted = empty_tables(PLANS[name], n), np.arange(0, n, 7)
    first = forward(PLANS[name], graph_of(relationships, n), features, wanted, tables)
    assert (first.way, first.refreshed) == ("full", n)
    again = forward(PLANS[name], graph_of(relationships, n), features, wanted, tables)
    assert (again.way, again.refreshed) == ("incremental", 0)
    changed = np.zeros(n, np.int64)
    changed[[7, 21]] = 1
    more = np.hstack([relationships, [[7], [21]]])
    graph = graph_of(more, n, changed=changed, version=1)
    third = forward(PLANS[name], graph, features, wanted, tables)
    # GCN: the two ends, whose degrees changed, and their four neighbours on the ring
    assert third.refreshed == {"gcn": 6, "sage": 2, "gat": 2, "mlp": 0}[name]
    assert np.array_equal(third.logits, forward_whole(PLANS[name], graph, features)[wanted])


def test_the_cheaper_way_is_chosen_and_named():
    rng = np.random.default_rng(0)
    n = 300
    features = rng.standard_normal((n, WIDTH), dtype=np.float32)
    plan, tables = PLANS["sage"], empty_tables(PLANS["sage"], n)
    ends = rng.integers(0, n, (2, 900))
    everyone = np.arange(n)
    first = forward(plan, graph_of(ends, n), features, everyone, tables)
    assert "nothing was kept" in first.reason
    few = np.zeros(n, np.int64)
    few[:5] = 1
    small = forward(plan, graph_of(ends, n, changed=few, version=1), features, everyone, tables)
    assert (small.way, small.refreshed) == ("incremental", 5)
    all_ = np.full(n, 2)
    large = forward(plan, graph_of(ends, n, changed=all_, version=2), features, everyone, tables)
    assert (large.way, large.refreshed) == ("full", n)
    assert "cheaper" in large.reason
    assert Cost(1, 10).way == "incremental"
    walking = forward(
        PLANS["appnp"],
        graph_of(ends, n),
        features,
        everyone,
        empty_tables(PLANS["appnp"], n),
    )
    assert walking.way == "full"


@pytest.mark.parametrize("name", ALL)
def test_two_threads_give_the_bits_of_one(name):
    rng = np.random.default_rng(3)
    n = 2_000
    features = rng.standard_normal((n, WIDTH), dtype=np.float32)
    graph = graph_of(rng.integers(0, n, (2, 9_000)), n)
    one = forward_whole(PLANS[name], graph, features)
    assert np.array_equal(one, forward_whole(PLANS[name], graph, features, workers=3))


def test_a_users_own_module_has_no_plan():
    assert plan_of(torch.nn.Linear(3, 2), torch.zeros(3), torch.ones(3)) is None


def test_a_gat_with_energies_far_apart_neither_overflows_nor_vanishes():
    network = network_of("gat")
    with torch.no_grad():
        network.conv1.att_src.mul_(500)
    plan = plan_of(network, torch.zeros(WIDTH), torch.ones(WIDTH))
    rng = np.random.default_rng(3)
    features = rng.standard_normal((50, WIDTH), dtype=np.float32)
    ends = rng.integers(0, 50, (2, 300))
    found = forward_whole(plan, graph_of(ends, 50), features)
    with torch.no_grad():
        index = canonical_edges(torch.from_numpy(ends), 50)
        truth = network(torch.from_numpy(features), index).numpy()
    np.testing.assert_allclose(found, truth, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100))
def test_neighbours_are_those_of_the_edges_that_networks_see(events, seed):
    history = History(seed)
    for event in events:
        history.event(*event)
    graph, edges = history.graph(), history.edges().numpy()
    n = len(history.features)
    near = in_neighbours(graph, np.arange(n))
    assert np.array_equal(near.sources, edges[0])
    assert np.array_equal(np.repeat(np.arange(n), near.counts()), edges[1])
    counts = neighbour_counts(graph, np.arange(n))
    assert np.array_equal(counts, degrees(edges, n))


def test_tables_and_features_must_have_a_row_per_node():
    graph = graph_of(np.array([[0], [1]]), 2)
    with pytest.raises(ValueError, match="both need a row per node"):
        forward_whole(PLANS["gcn"], graph, np.zeros((1, WIDTH), np.float32))


@pytest.mark.parametrize(
    "module",
    ["graph", "changes", "cost", "messages", "plan", "state", "forward", "layers.base"],
)
def test_the_examples_in_the_docstrings_hold(module):
    found = importlib.import_module(f"ringfence.models.inference.{module}")
    assert doctest.testmod(found).failed == 0
