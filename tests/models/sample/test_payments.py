"""The sample graph of several labels: seeded, with gaps, its arrival order saying nothing."""

import doctest

import numpy as np

from ringfence.models.encoders import infer_kind
from ringfence.models.sample import payments
from ringfence.models.sample.payments import payment_graph


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(payments).failed == 0


def test_the_same_seed_gives_the_same_graph():
    one, two, other = (payment_graph(400, seed=seed) for seed in (3, 3, 4))
    assert one.columns == two.columns
    assert (one.devices, one.merchants) == (two.devices, two.merchants)
    assert (one.transfers, one.payments) == (two.transfers, two.payments)
    assert np.array_equal(one.uses, two.uses)
    assert one.columns != other.columns


def test_columns_are_of_many_kinds_and_have_gaps():
    graph = payment_graph(600, seed=1)
    kinds = {}
    for rows in (graph.columns, graph.devices, graph.merchants):
        for name in rows[0]:
            kinds[name] = infer_kind([row[name] for row in rows]).kind
    assert {"number", "category", "date", "boolean"} <= set(kinds.values())
    missing = [row["balance"] is None for row in graph.columns]
    assert 0 < sum(missing) < 120


def test_amounts_of_transfers_tell_of_the_kinds_at_their_ends_and_have_gaps():
    graph = payment_graph(2_000, seed=4)
    edges, y = graph.accounts.edges, graph.accounts.y
    assert len(graph.transfers) == edges.shape[1]
    assert len(graph.payments) == graph.pays.shape[1]
    amounts = [row["amount"] for row in graph.transfers]
    assert 0 < amounts.count(None) < 0.1 * len(amounts)
    assert infer_kind(amounts).kind == "number"
    there = np.array([amount is not None for amount in amounts])
    logs = np.log(np.array([amount or 1.0 for amount in amounts]))
    among = [logs[there & (y[edges] == kind).all(axis=0)].mean() for kind in range(4)]
    assert np.abs(np.array(among) - payments.TRANSFERRED).max() < 0.3


def test_mules_share_devices_and_every_account_has_neighbours():
    graph = payment_graph(1_000, seed=2)
    mule = graph.accounts.y == graph.accounts.classes.index("mule")
    shared = np.bincount(graph.uses[1], minlength=len(graph.devices)) >= 5
    of_mules = shared[graph.uses[1]][mule[graph.uses[0]]].mean()
    of_others = shared[graph.uses[1]][~mule[graph.uses[0]]].mean()
    assert of_mules > 4 * of_others
    assert set(graph.uses[0]) == set(graph.pays[0]) == set(range(1_000))


def test_arrival_says_nothing_of_the_class():
    graph = payment_graph(4_000, seed=5).accounts
    late = graph.node_time > np.median(graph.node_time)
    shares = [np.bincount(graph.y[part], minlength=4) / part.sum() for part in (late, ~late)]
    assert np.abs(shares[0] - shares[1]).max() < 0.05


def test_a_drift_leaves_the_accounts_before_it_and_their_classes_as_they_are():
    plain, drifted = payment_graph(1_000, seed=6), payment_graph(1_000, seed=6, drift_at=0.7)
    late = np.argsort(plain.accounts.node_time)[700:]
    assert {at for at in range(1_000) if plain.columns[at] != drifted.columns[at]} == set(late)
    assert np.array_equal(plain.accounts.y, drifted.accounts.y)
    assert np.array_equal(plain.pays, drifted.pays)
    assert np.array_equal(plain.uses, drifted.uses)
    assert plain.devices == drifted.devices
    assert (plain.transfers, plain.payments) == (drifted.transfers, drifted.payments)


def test_after_a_drift_balances_tell_as_much_of_the_class_and_something_else():
    graph = payment_graph(4_000, seed=6, drift_at=0.5)
    order = np.argsort(graph.accounts.node_time)
    means = []
    for part in (order[:2_000], order[2_000:]):
        logs = np.array([np.log(graph.columns[at]["balance"] or np.nan) for at in part])
        means.append([np.nanmean(logs[graph.accounts.y[part] == kind]) for kind in range(4)])
    before, after = np.array(means)
    assert np.abs(after - before[list(payments.LIKE_BEFORE)]).max() < 0.3
    assert np.corrcoef(before, after)[0, 1] < 0
