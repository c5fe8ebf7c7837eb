"""Deleted nodes, removed relationships, changed features: what a pass must not miss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.inference import forward, forward_whole, graph_of
from ringfence.models.inference.graph import (
    AlteredFeatures,
    InferenceGraph,
    RemovedEntries,
    in_neighbours,
)
from ringfence.models.inference.state import empty_tables
from tests.models.inference.histories import ALL, EVENTS, PLANS, WIDTH, History, differences

CHANGES = [("alter", i, 0) for i in range(8)]
REMOVALS = [("unlink", i, 0) for i in range(8)]


@pytest.mark.parametrize("name", ALL)
def test_without_the_mark_of_changed_features_the_outputs_would_be_wrong(name, monkeypatch):
    """A control: the features change and nobody is told."""
    assert max(differences(name, CHANGES, seed=1)[0]) == 0.0
    monkeypatch.setattr(AlteredFeatures, "since", lambda *_: np.empty(0, np.int64))
    alter = History.alter

    def silently(self, node):
        alter(self, node)
        self.altered.clear()

    monkeypatch.setattr(History, "alter", silently)
    assert max(differences(name, CHANGES, seed=1)[0]) > 1e-3


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "appnp"])
def test_removed_relationships_that_still_counted_would_be_seen(name, monkeypatch):
    """A control: the base without its list of removed entries."""
    graph = History.graph

    def whole_base(self):
        found = graph(self)
        kept = {f: getattr(found, f) for f in InferenceGraph.__slots__ if f != "removed"}
        return InferenceGraph(**kept, removed=RemovedEntries())

    assert max(differences(name, REMOVALS, seed=1)[1]) < 1e-5
    monkeypatch.setattr(History, "graph", whole_base)
    assert max(differences(name, REMOVALS, seed=1)[1]) > 1e-3


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=20, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100))
def test_a_graph_without_its_gaps_gives_the_same_bits(name, events, seed):
    history = History(seed)
    for event in [*events, ("delete", seed, 0), ("unlink", seed, 0)]:
        history.event(*event)
    graph, alive = history.graph(), np.array(history.alive)
    place = np.full(graph.size, -1)
    place[alive] = np.arange(len(alive))
    near = in_neighbours(graph, alive)
    ends = np.stack([place[near.sources], np.repeat(place[alive], near.counts())])
    assert ends.min(initial=0) == 0  # no gap is anybody's neighbour
    compact = graph_of(ends, len(alive), undirected=False)
    features = history.features[alive]
    assert np.array_equal(
        forward_whole(PLANS[name], graph, history.features)[alive],
        forward_whole(PLANS[name], compact, features),
    )


def test_changed_features_cost_their_own_row_and_those_that_hear_it():
    n = 400
    features = np.random.default_rng(0).standard_normal((n, WIDTH), dtype=np.float32)
    ring, wanted = np.stack([np.arange(n), (np.arange(n) + 1) % n]), np.arange(0, n, 7)
    for name, computed in {"gcn": 3, "sage": 3, "gat": 3, "mlp": 1}.items():
        tables = empty_tables(PLANS[name], n)
        forward(PLANS[name], graph_of(ring, n), features, wanted, tables)
        other = features.copy()
        other[7] += 1
        graph = graph_of(ring, n, version=1)
        graph = with_altered(graph, np.array([7]), np.array([1]))
        found = forward(PLANS[name], graph, other, wanted, tables)
        assert (found.way, found.refreshed) == ("incremental", computed)
        assert np.array_equal(found.logits, forward_whole(PLANS[name], graph, other)[wanted])


def with_altered(graph, rows, versions):
    kept = {f: getattr(graph, f) for f in InferenceGraph.__slots__ if f != "altered"}
    return InferenceGraph(**kept, altered=AlteredFeatures(rows, versions))


def test_lists_of_changes_that_lead_outside_are_refused():
    graph = graph_of(np.array([[0], [1]]), 2)
    with pytest.raises(ValueError, match="altered"):
        with_altered(graph, np.array([2]), np.array([1]))
    with pytest.raises(ValueError, match="one version each"):
        with_altered(graph, np.array([0]), np.array([], np.int64))
    kept = {f: getattr(graph, f) for f in InferenceGraph.__slots__ if f != "removed"}
    one, code = np.array([1], np.int32), np.array([0], np.uint8)
    for wrong in (
        RemovedEntries(np.array([2]), np.array([0, 1]), one, code),
        RemovedEntries(np.array([0]), np.array([0, 2]), one, code),
        RemovedEntries(np.array([0, 0]), np.array([0, 1, 1]), one, code),
        RemovedEntries(np.array([0]), np.array([0, 1]), one, code[:0]),
    ):
        with pytest.raises(ValueError, match="removed"):
            InferenceGraph(**kept, removed=wrong)


def test_features_that_overflow_give_no_number_and_no_crash():
    """The attention of a NaN once was looked up at any place in memory."""
    features = np.full((4, WIDTH), 3e38, np.float32)
    graph = graph_of(np.array([[0, 1, 2], [1, 2, 3]]), 4)
    assert not np.isfinite(forward_whole(PLANS["gat"], graph, features)).all()
