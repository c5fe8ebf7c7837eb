"""GCN's kept sums: changed messages are exchanged in them, with the bits of a full pass."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.inference import (
    InNeighbours,
    empty_tables,
    forward,
    forward_whole,
    graph_of,
    in_neighbours,
    messages,
)
from ringfence.models.inference import cost as cost_module
from ringfence.models.inference import state as tables_module
from ringfence.models.inference.kernels import exchange as exchange_kernels
from ringfence.models.inference.layers.gcn import GCNPlan
from tests.models.inference.histories import (
    EVENTS,
    LINKS,
    MEAN,
    NETS,
    PLANS,
    SPREAD,
    WIDTH,
    History,
    differences,
)


def test_gcn_needs_its_neighbours_degrees_too(monkeypatch):
    """A control: refresh only nodes whose own relationships changed, as SAGE may."""
    monkeypatch.setattr(messages, "receivers", lambda _, rows: nobody(rows))
    ours, _ = differences("gcn", LINKS, seed=1)
    assert max(ours) > 1e-4


def test_gcn_needs_the_changes_that_came_while_a_row_was_not_needed(monkeypatch):
    """A control: trust a kept row, though nobody looked at it in the last pass."""
    monkeypatch.setattr(messages, "newest_change", lambda _, rows, __: np.full(len(rows), -1))
    assert max(max(differences("gcn", LINKS, seed)[0]) for seed in range(20)) > 1e-4


def nobody(rows):
    return InNeighbours(rows, np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32))


def test_gcns_kept_sums_take_what_changed_in_them(monkeypatch):
    """And a control: leave the sums as they are, and the outputs are wrong."""
    exchange, rows = exchange_kernels.exchange_messages, []

    def counted(start, stop, *rest):
        rows.append(stop - start)
        return exchange(start, stop, *rest)

    monkeypatch.setattr(exchange_kernels, "exchange_messages", counted)
    assert max(differences("gcn", LINKS, seed=1)[0]) == 0.0
    assert sum(rows) > 10
    monkeypatch.setattr(exchange_kernels, "exchange_messages", lambda *_: None)
    assert max(differences("gcn", LINKS, seed=1)[0]) > 1e-4


def ways_of(events, monkeypatch):
    """How often each way of coming by a touched row's sum was taken, with all nodes wanted."""
    compare, taken = exchange_kernels.compare_lists, []

    def watched(*arguments):
        compare(*arguments)
        taken.extend(arguments[-2].tolist())

    with monkeypatch.context() as patch:
        patch.setattr(exchange_kernels, "compare_lists", watched)
        kept, fresh = kept_and_fresh_sums(1.0, events)
    assert np.array_equal(kept, fresh)
    return {way: taken.count(way) for way in range(4)}


def test_rows_whose_own_relationships_changed_are_exchanged_too(monkeypatch):
    """A node that came, one neighbour more, one less, other features: the sum takes each."""
    came = ways_of([("node", 1, b) for b in range(6)], monkeypatch)
    assert came[exchange_kernels.KEPT] >= 6
    linked = ways_of([("link", a, a + 3) for a in range(6)], monkeypatch)
    assert linked[exchange_kernels.ONE_CAME] >= 6
    cut = ways_of([("unlink", a, 0) for a in range(6)], monkeypatch)
    assert cut[exchange_kernels.ONE_WENT] >= 6
    other = ways_of([("alter", a, 0) for a in range(6)], monkeypatch)
    assert other[exchange_kernels.KEPT] >= 6


def test_without_the_comparison_of_lists_a_kept_sum_would_be_wrong(monkeypatch):
    """A control: take every list for the kept one."""

    def careless(*arguments):
        arguments[-2][:] = np.where(arguments[3][arguments[0]], exchange_kernels.KEPT, 0)

    monkeypatch.setattr(exchange_kernels, "compare_lists", careless)
    assert max(differences("gcn", LINKS, seed=1)[0]) > 1e-4


@pytest.mark.parametrize("both", [np.array([True, True]), np.array([False, False])])
@settings(max_examples=20, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100))
def test_gcns_sums_are_exact_whichever_way_relationships_point(both, events, seed):
    ours, reference = differences("gcn", events, seed, both=both)
    assert max(ours) == 0.0
    assert max(reference) < 1e-5


def test_where_slots_run_out_rows_that_nobody_needs_give_theirs_back(monkeypatch):
    monkeypatch.setattr(tables_module, "MAX_SUM_SLOTS", 3)
    tables = empty_tables(PLANS["gcn"], 6)
    tables.give_slots(np.array([0, 1]), np.array([0, 1]))
    tables.give_slots(np.array([2, 3]), np.array([1, 2, 3]))
    assert tables.slots.tolist() == [0, 2, 1, 3, 0, 0]
    tables.give_slots(np.array([4, 5]), np.arange(1, 6))
    assert tables.slots.tolist() == [0, 2, 1, 3, 0, 0]  # all are in use: these two get none
    assert tables.used == 3


@settings(max_examples=20, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100))
def test_few_slots_for_gcns_sums_make_it_slower_but_not_wrong(events, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "MAX_SUM_SLOTS", 5)
        assert max(differences("gcn", events, seed)[0]) == 0.0


@settings(max_examples=20, deadline=None)
@given(events=EVENTS, seed=st.integers(0, 100), large=st.integers(3, 30))
def test_features_far_out_leave_the_outputs_of_a_full_pass(events, seed, large):
    """Such a message is too large for a kept sum: 10^30 - 10^30 + 1 would be 0."""
    ours, _ = differences("gcn", events, seed, largest=10.0**large)
    assert max(ours) == 0.0


DRAWN = np.random.default_rng(2).integers(0, 1000, (60, 2)).tolist()
GROWTH = [("node" if i % 3 == 0 else "link", a, b) for i, (a, b) in enumerate(DRAWN)]


def kept_and_fresh_sums(largest, events=GROWTH):
    """Sums that took changes over many steps, beside those of the same messages in their order."""
    plan, history = PLANS["gcn"], History(2)
    history.features[0] *= np.float32(largest)
    tables = empty_tables(plan, 64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost_module, "SCATTERED_ROW_COST", 0.0)
        for event in [None, *events]:
            if event is not None:
                history.event(*event)
            graph, alive = history.graph(), np.array(history.alive)
            forward(plan, graph, history.features, alive, tables)
    rows = np.flatnonzero(tables.slots)
    near = in_neighbours(graph, rows)
    fresh = [
        tables.first[[row, *sources]].astype(np.float64).cumsum(axis=0)[-1]
        for row, sources in zip(rows, np.split(near.sources, near.offsets[1:-1]), strict=True)
    ]
    return tables.sums[tables.slots[rows] - 1], np.array(fresh).reshape(len(rows), -1)


def test_a_message_outside_the_exact_range_is_in_no_kept_sum(monkeypatch):
    kept, fresh = kept_and_fresh_sums(largest=1.0)
    many = len(kept)
    assert many > 8
    assert np.array_equal(kept, fresh)
    kept, fresh = kept_and_fresh_sums(largest=1e12)
    assert len(kept) < many
    assert np.array_equal(kept, fresh)
    monkeypatch.setattr(GCNPlan, "exact_range", property(lambda _: np.inf))  # a control
    kept, fresh = kept_and_fresh_sums(largest=1e12)
    assert not np.array_equal(kept, fresh)


def test_messages_lie_on_the_grid_and_their_sums_in_any_order_are_the_same():
    rng = np.random.default_rng(0)
    plan, n = PLANS["gcn"], 3_000
    tables = empty_tables(plan, n)
    features = rng.standard_normal((n, WIDTH), dtype=np.float32)
    forward_whole(plan, graph_of(rng.integers(0, n, (2, 9_000)), n), features, tables)
    found = tables.first.astype(np.float64)
    assert np.array_equal(found / plan.grid, np.round(found / plan.grid))
    assert not plan.exceeds_exact_range(tables.first).any()
    sums = {tuple(found[rng.permutation(n)].cumsum(axis=0)[-1]) for _ in range(20)}
    assert len(sums) == 1
    loose = (found + 1e-9 * rng.random(found.shape))[:, :1]  # a control: off the grid
    assert len({loose[rng.permutation(n)].cumsum()[-1] for _ in range(20)}) > 1


def test_a_hub_is_summed_more_exactly_than_in_float32():
    rng = np.random.default_rng(3)
    n = 50_000
    features = rng.standard_normal((n, WIDTH), dtype=np.float32) + np.float32(3)
    graph = graph_of(np.stack([np.arange(1, n), np.zeros(n - 1, np.int64)]), n)  # a star
    x = (torch.from_numpy(features) - MEAN) / SPREAD
    near = in_neighbours(graph, np.arange(n))
    index = torch.from_numpy(np.stack([near.sources, np.repeat(np.arange(n), near.counts())]))
    with torch.no_grad():
        narrow = NETS["gcn"](x, index.long()).numpy()[0]
        exact = copy.deepcopy(NETS["gcn"]).double()(x.double(), index.long()).numpy()[0]
    ours = np.abs(forward_whole(PLANS["gcn"], graph, features)[0] - exact).max()
    assert ours < 1e-6 * np.abs(exact).max()
    assert ours < np.abs(narrow - exact).max() / 5  # a control: PyG adds in float32
