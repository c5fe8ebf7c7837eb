"""The incremental forward pass equals the full one, after every step of any history."""

from __future__ import annotations

import copy
import doctest
import importlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.incremental import (
    Cost,
    Heard,
    Incidence,
    Plan,
    empty_tables,
    forward,
    forward_whole,
    heard,
    incidence_of,
    messages,
    plan_of,
)
from ringfence.models.incremental import _message_kernels as message_kernels
from ringfence.models.incremental import cost as cost_module
from ringfence.models.incremental import tables as tables_module
from ringfence.models.incremental.incidence import code_of, neighbour_counts
from ringfence.models.networks import NETWORKS, build, canonical_edges
from ringfence.models.snapshot import degrees

ALL = list(NETWORKS)
WIDTH, CLASSES = 6, 3
BOTH = np.array([True, False])  # type 0 is undirected, type 1 is not


class History:
    """A graph with two relationship types that grows, shrinks and is relabelled."""

    def __init__(self, seed, both=BOTH):
        self.both = both
        self.rng = np.random.default_rng(seed)
        self.features = np.empty((0, WIDTH), np.float32)
        self.relationships = []  # (source, target, type): loops and parallels included
        self.base = 0  # so many of them are in the base, the others came late
        self.gone = set()
        self.changed = np.empty(0, np.int64)
        self.version = 0
        for _ in range(8):
            self.node()
        for _ in range(10):
            self.link(*self.rng.integers(0, 8, 2))
        self.base = len(self.relationships)

    @property
    def alive(self):
        return [i for i in range(len(self.features)) if i not in self.gone]

    def node(self):
        self.features = np.vstack(
            [self.features, self.rng.standard_normal((1, WIDTH), dtype=np.float32)]
        )
        self.changed = np.append(self.changed, self.version)
        return len(self.features) - 1

    def link(self, a, b):
        self.relationships.append((int(a), int(b), int(self.rng.integers(0, 2))))
        self.changed[[a, b]] = self.version

    def unlink(self, place):
        a, b, _ = self.relationships.pop(place)
        self.changed[[a, b]] = self.version
        self.base = len(self.relationships)

    def delete(self, node):
        for place in reversed(range(len(self.relationships))):
            if node in self.relationships[place][:2]:
                self.unlink(place)
        self.gone.add(node)

    def event(self, kind, a, b):
        self.version += 1
        alive = self.alive
        if kind == "node":
            new = self.node()
            for _ in range(a % 3):
                self.link(new, alive[b % len(alive)])
        elif kind == "link":
            self.link(alive[a % len(alive)], alive[b % len(alive)])
        elif kind == "unlink" and self.relationships:
            self.unlink(a % len(self.relationships))
        elif kind == "delete" and len(alive) > 3:
            self.delete(alive[a % len(alive)])
        elif kind == "merge":
            self.base = len(self.relationships)
        # "relabel" changes a class, which no network sees

    def incidence(self):
        offsets, others, codes, _ = lists(self.relationships[: self.base], len(self.features))
        late_offsets, late_others, late_codes, _ = lists(
            self.relationships[self.base :], len(self.features)
        )
        keep = np.flatnonzero(np.diff(late_offsets))
        return Incidence(
            offsets, others, codes,
            keep, np.append(late_offsets[keep], late_offsets[-1]), late_others, late_codes,
            len(self.features), self.both, self.changed, self.version,
        )  # fmt: skip

    def edges(self):
        ends = [(a, b) for a, b, _ in self.relationships]
        ends += [(b, a) for a, b, kind in self.relationships if self.both[kind]]
        index = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T
        return canonical_edges(index, len(self.features), undirected=False)


def lists(relationships, nodes):
    rows = sorted(
        {(b, a, code_of(kind, True)) for a, b, kind in relationships}
        | {(a, b, code_of(kind, False)) for a, b, kind in relationships}
    )
    node, other, code = np.array(rows, np.int64).reshape(-1, 3).T
    offsets = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=nodes))]).astype(np.int64)
    return offsets, other.astype(np.int32), code.astype(np.uint8), node


def network_of(name):
    network = build(name, WIDTH, CLASSES, hidden=8, seed=1).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():  # biases are zero at first: let them take part
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return network


MEAN, SPREAD = torch.full((WIDTH,), 0.3), torch.full((WIDTH,), 1.7)
NETS = {name: network_of(name) for name in ALL}
PLANS = {name: plan_of(net, MEAN, SPREAD) for name, net in NETS.items()}

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["node", "node", "link", "link", "unlink", "delete", "relabel", "merge"]),
        st.integers(0, 1000),
        st.integers(0, 1000),
    ),
    min_size=1,
    max_size=12,
)


LINKS = [("link", i, i + 3) for i in range(8)]


def differences(name, events, seed, scattered=0.0, both=BOTH, loudest=1.0):
    """Per step, the largest difference to the full pass of ours and to PyG's."""
    plan, history = PLANS[name], History(seed, both)
    history.features[0] *= np.float32(loudest)
    tables = empty_tables(plan, 64)
    ours, reference = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost_module, "SCATTERED", scattered)  # 0: the incremental way however small
        for event in [None, *events]:
            if event is not None:
                history.event(*event)
            graph, alive = history.incidence(), np.array(history.alive)
            wanted = alive[history.rng.random(len(alive)) < 0.5]
            found = forward(plan, graph, history.features, wanted, tables)
            whole = forward_whole(plan, graph, history.features)[wanted]
            x = (torch.from_numpy(history.features) - MEAN) / SPREAD
            with torch.no_grad():
                truth = NETS[name](x, history.edges()).numpy()[wanted]
            ours.append(np.abs(found.logits - whole).max(initial=0))
            reference.append(np.abs(found.logits - truth).max(initial=0))
    return ours, reference


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


def test_gcn_needs_its_neighbours_degrees_too(monkeypatch):
    """A control: refresh only nodes whose own relationships changed, as SAGE may."""
    monkeypatch.setattr(messages, "hearing", lambda _, rows: nobody(rows))
    ours, _ = differences("gcn", LINKS, seed=1)
    assert max(ours) > 1e-4


def test_gcn_needs_the_changes_that_came_while_a_row_was_not_needed(monkeypatch):
    """A control: trust a kept row, though nobody looked at it in the last pass."""
    monkeypatch.setattr(messages, "newest_change", lambda _, rows: np.full(len(rows), -1))
    assert max(max(differences("gcn", LINKS, seed)[0]) for seed in range(20)) > 1e-4


def nobody(rows):
    return Heard(rows, np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32))


def test_gcns_kept_sums_take_what_changed_in_them(monkeypatch):
    """And a control: leave the sums as they are, and the outputs are wrong."""
    exchange, pairs = message_kernels.exchange, []

    def counted(listeners, *rest):
        pairs.append(len(listeners))
        return exchange(listeners, *rest)

    monkeypatch.setattr(message_kernels, "exchange", counted)
    assert max(differences("gcn", LINKS, seed=1)[0]) == 0.0
    assert sum(pairs) > 10
    monkeypatch.setattr(message_kernels, "exchange", lambda *_: None)
    assert max(differences("gcn", LINKS, seed=1)[0]) > 1e-4


@pytest.mark.parametrize("both", [np.array([True, True]), np.array([False, False])])
@settings(max_examples=20, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100))
def test_gcns_sums_are_exact_whichever_way_relationships_are_heard(both, events, seed):
    ours, reference = differences("gcn", events, seed, both=both)
    assert max(ours) == 0.0
    assert max(reference) < 1e-5


@settings(max_examples=20, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100))
def test_few_slots_for_gcns_sums_make_it_slower_but_not_wrong(events, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "SUMS", 5)
        assert max(differences("gcn", events, seed)[0]) == 0.0


@settings(max_examples=20, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100), large=st.integers(3, 30))
def test_features_far_out_leave_the_outputs_of_a_full_pass(events, seed, large):
    """Such a message is too loud for a kept sum: 10^30 - 10^30 + 1 would be 0."""
    ours, _ = differences("gcn", events, seed, loudest=10.0**large)
    assert max(ours) == 0.0


def kept_and_fresh_sums(loudest):
    """Sums that took changes over many steps, beside those of the same messages in their order."""
    plan, history = PLANS["gcn"], History(2)
    draw = np.random.default_rng(2).integers(0, 1000, (60, 2)).tolist()
    events = [("node" if i % 3 == 0 else "link", a, b) for i, (a, b) in enumerate(draw)]
    history.features[0] *= np.float32(loudest)
    tables = empty_tables(plan, 64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost_module, "SCATTERED", 0.0)
        for event in [None, *events]:
            if event is not None:
                history.event(*event)
            graph, alive = history.incidence(), np.array(history.alive)
            forward(plan, graph, history.features, alive, tables)
    rows = np.flatnonzero(tables.slots)
    near = heard(graph, rows)
    fresh = [
        tables.first[[row, *sources]].astype(np.float64).cumsum(axis=0)[-1]
        for row, sources in zip(rows, np.split(near.sources, near.offsets[1:-1]), strict=True)
    ]
    return tables.sums[tables.slots[rows] - 1], np.array(fresh).reshape(len(rows), -1)


def test_a_loud_message_is_in_no_kept_sum_for_it_would_take_their_digits(monkeypatch):
    kept, fresh = kept_and_fresh_sums(loudest=1.0)
    many = len(kept)
    assert many > 8
    assert np.array_equal(kept, fresh)
    kept, fresh = kept_and_fresh_sums(loudest=1e12)
    assert len(kept) < many
    assert np.array_equal(kept, fresh)
    monkeypatch.setattr(Plan, "loud", property(lambda _: np.inf))  # a control
    kept, fresh = kept_and_fresh_sums(loudest=1e12)
    assert not np.array_equal(kept, fresh)


def test_messages_lie_on_the_grid_and_their_sums_in_any_order_are_the_same():
    rng = np.random.default_rng(0)
    plan, n = PLANS["gcn"], 3_000
    tables = empty_tables(plan, n)
    features = rng.standard_normal((n, WIDTH), dtype=np.float32)
    forward_whole(plan, incidence_of(rng.integers(0, n, (2, 9_000)), n), features, tables)
    found = tables.first.astype(np.float64)
    assert np.array_equal(found / plan.grid, np.round(found / plan.grid))
    assert not plan.is_loud(tables.first).any()
    sums = {tuple(found[rng.permutation(n)].cumsum(axis=0)[-1]) for _ in range(20)}
    assert len(sums) == 1
    loose = (found + 1e-9 * rng.random(found.shape))[:, :1]  # a control: off the grid
    assert len({loose[rng.permutation(n)].cumsum()[-1] for _ in range(20)}) > 1


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "mlp"])
def test_a_row_is_computed_again_only_where_something_changed(name):
    rng = np.random.default_rng(0)
    n = 400
    features = rng.standard_normal((n, WIDTH), dtype=np.float32)
    relationships = np.stack([np.arange(n), (np.arange(n) + 1) % n])  # a ring
    tables, wanted = empty_tables(PLANS[name], n), np.arange(0, n, 7)
    first = forward(PLANS[name], incidence_of(relationships, n), features, wanted, tables)
    assert (first.way, first.refreshed) == ("full", n)
    again = forward(PLANS[name], incidence_of(relationships, n), features, wanted, tables)
    assert (again.way, again.refreshed) == ("incremental", 0)
    changed = np.zeros(n, np.int64)
    changed[[7, 21]] = 1
    more = np.hstack([relationships, [[7], [21]]])
    graph = incidence_of(more, n, changed=changed, version=1)
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
    first = forward(plan, incidence_of(ends, n), features, everyone, tables)
    assert "nothing was kept" in first.reason
    few = np.zeros(n, np.int64)
    few[:5] = 1
    small = forward(plan, incidence_of(ends, n, changed=few, version=1), features, everyone, tables)
    assert (small.way, small.refreshed) == ("incremental", 5)
    all_ = np.full(n, 2)
    large = forward(
        plan, incidence_of(ends, n, changed=all_, version=2), features, everyone, tables
    )
    assert (large.way, large.refreshed) == ("full", n)
    assert "cheaper" in large.reason
    assert Cost(1, 10).way == "incremental"
    walking = forward(
        PLANS["appnp"], incidence_of(ends, n), features, everyone, empty_tables(PLANS["appnp"], n)
    )
    assert walking.way == "full"


@pytest.mark.parametrize("name", ALL)
def test_two_threads_give_the_bits_of_one(name):
    rng = np.random.default_rng(3)
    n = 2_000
    features = rng.standard_normal((n, WIDTH), dtype=np.float32)
    graph = incidence_of(rng.integers(0, n, (2, 9_000)), n)
    one = forward_whole(PLANS[name], graph, features)
    assert np.array_equal(one, forward_whole(PLANS[name], graph, features, workers=3))


def test_a_hub_is_summed_more_exactly_than_in_float32():
    rng = np.random.default_rng(3)
    n = 50_000
    features = rng.standard_normal((n, WIDTH), dtype=np.float32) + np.float32(3)
    graph = incidence_of(np.stack([np.arange(1, n), np.zeros(n - 1, np.int64)]), n)  # a star
    x = (torch.from_numpy(features) - MEAN) / SPREAD
    near = heard(graph, np.arange(n))
    index = torch.from_numpy(np.stack([near.sources, np.repeat(np.arange(n), near.counts())]))
    with torch.no_grad():
        narrow = NETS["gcn"](x, index.long()).numpy()[0]
        exact = copy.deepcopy(NETS["gcn"]).double()(x.double(), index.long()).numpy()[0]
    ours = np.abs(forward_whole(PLANS["gcn"], graph, features)[0] - exact).max()
    assert ours < 1e-6 * np.abs(exact).max()
    assert ours < np.abs(narrow - exact).max() / 5  # a control: PyG adds in float32


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
    found = forward_whole(plan, incidence_of(ends, 50), features)
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
    graph, edges = history.incidence(), history.edges().numpy()
    n = len(history.features)
    near = heard(graph, np.arange(n))
    assert np.array_equal(near.sources, edges[0])
    assert np.array_equal(np.repeat(np.arange(n), near.counts()), edges[1])
    counts = neighbour_counts(graph, np.arange(n))
    assert np.array_equal(counts, degrees(torch.from_numpy(edges), n).numpy())


def test_tables_and_features_must_have_a_row_per_node():
    graph = incidence_of(np.array([[0], [1]]), 2)
    with pytest.raises(ValueError, match="both need a row per node"):
        forward_whole(PLANS["gcn"], graph, np.zeros((1, WIDTH), np.float32))


@pytest.mark.parametrize("module", ["incidence", "cost", "messages", "plan", "tables", "forward"])
def test_the_examples_in_the_docstrings_hold(module):
    found = importlib.import_module(f"ringfence.models.incremental.{module}")
    assert doctest.testmod(found).failed == 0
