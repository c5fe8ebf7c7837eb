"""The watch: false alarms are as rare as promised, and drifts are seen.

Ville's bound is checked by counting alarms in R simulated sequences: with a false-alarm probability
of at most delta, more than `_most(R, delta)` of them happen by chance less than once in 1,000.
"""

import json
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy import integrate, stats

from ringfence.models.exchangeability.martingales import Martingale
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor
from ringfence.models.exchangeability.smoothed_pvalues import (
    Urn,
    degree_strata,
    reference_sample,
    smoothed_p_values,
)
from ringfence.models.sample.accounts import NEVER_NS, Drift, sample_graph

KINDS = ("jumper", "mixture")
DELTA = 0.05


def _most(sequences, delta):
    return stats.binom.ppf(0.999, sequences, delta)


def _alarms(sequences, delta=DELTA):
    """How many sequences of p-values make each martingale, and the watch, raise an alarm."""
    found = Counter()
    for p in sequences:
        watch = ExchangeabilityMonitor.start().after(p)
        found["jumper"] += watch.jumper.alarm(delta)
        found["mixture"] += watch.mixture.alarm(delta)
        found["watch"] += watch.alarm(delta)
    return found


# The martingales ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_keeps_the_expected_capital(kind):
    """The integral of the capital after one more uniform p-value is the capital before it."""
    state = Martingale.start(kind)
    for p in (0.2, 0.9, 0.01, 0.5, 0.03):
        before = state.log_capital
        after, error = integrate.quad(
            lambda q, state=state, before=before: np.exp(state.update(q).log_capital - before),
            0,
            1,
            points=[1e-6, 1 - 1e-6],
            limit=200,
        )
        assert after == pytest.approx(1, abs=1e-5 + error)
        state = state.update(p)


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_form_gives_the_bits_of_the_step_by_step_form(kind):
    p = np.random.default_rng(3).beta(0.6, 1.0, 700)
    step = Martingale.start(kind)
    for value in p:
        step = step.update(value)
    at_once, path = Martingale.start(kind).update_all(p)
    pieces = Martingale.start(kind)
    for part in np.array_split(p, 9):
        stored = json.loads(json.dumps(pieces.as_dict(), allow_nan=False))
        pieces, _ = Martingale.from_dict(stored).update_all(part)
    assert at_once == step == pieces
    assert len(path) == 700
    assert path[-1] == pytest.approx(step.log_capital)
    assert step.log_peak == pytest.approx(max(path.max(), 0))
    assert path[step.peak_at - 1] == path.max()


def test_a_monitor_resumes_from_json_to_the_bit():
    p = np.random.default_rng(4).random(50)
    stored = json.loads(
        json.dumps(ExchangeabilityMonitor.start().after(p[:20]).as_dict(), allow_nan=False)
    )
    assert ExchangeabilityMonitor.from_dict(stored).after(
        p[20:]
    ) == ExchangeabilityMonitor.start().after(p)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 1e-300, 0.5, 1.0])
def test_a_million_equal_p_values_neither_overflow_nor_vanish(kind, value):
    state, path = Martingale.start(kind).update_all(np.full(1_000_000, value))
    assert np.isfinite(path).all()
    assert all(0 <= c < 1 for c in state.capitals)
    assert sum(state.capitals) >= 0.5
    assert state.alarm(1e-300) == (value != 0.5 or kind == "mixture")


# Ville's bound ------------------------------------------------------------------------------------


def _split_sequences(sequences, n, labels, *, naive, seed):
    rng = np.random.default_rng(seed)
    for _ in range(sequences):
        reference, scores, u = rng.random(n), rng.random(labels), rng.uniform(1e-9, 1, labels)
        if naive:
            yield (np.searchsorted(np.sort(reference), scores) + u) / (n + 1)
        else:
            yield smoothed_p_values(reference, scores, u)


@pytest.mark.parametrize("n", [30, 100, 500])
def test_false_alarms_stay_below_delta_with_a_fixed_reference(n):
    """2,000 labels, looked at after each one. Negative control: p-values taken as independent."""
    found = _alarms(_split_sequences(400, n, 2_000, naive=False, seed=n))
    naive = _alarms(_split_sequences(400, n, 2_000 if n < 500 else 8_000, naive=True, seed=n))
    assert max(found.values()) <= _most(400, DELTA)
    assert min(naive.values()) > _most(400, DELTA)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bet_with_an_edge_breaks_the_bound(kind):
    """Negative control of the martingales: bets that pay 1 % too much alarm nearly always."""
    p = np.random.default_rng(6).random((50, 2_000))
    fair = [Martingale.start(kind).update_all(row)[1] for row in p]
    unfair = [path + 0.01 * np.arange(1, 2_001) for path in fair]
    assert sum(path.max() >= -np.log(DELTA) for path in fair) <= _most(50, DELTA)
    assert sum(path.max() >= -np.log(DELTA) for path in unfair) > _most(50, DELTA)


def _passed(graph, edges):
    """Features after two rounds of message passing over these edges, as in a GCN."""
    n = graph.nodes
    adjacency = sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(n, n)).tocsr()
    adjacency = adjacency + adjacency.T + sparse.eye_array(n)
    scale = sparse.diags_array(adjacency.sum(1) ** -0.5)
    passing = scale @ adjacency @ scale
    return passing @ (passing @ graph.features.astype(float))


def _trained(graph, train):
    """Ridge regression on the subgraph induced by the training nodes alone."""
    inside = np.isin(graph.edges, train).all(0)
    x = _passed(graph, graph.edges[:, inside])[train]
    target = np.eye(len(graph.classes))[graph.y[train]] - 1 / len(graph.classes)
    return np.linalg.solve(x.T @ x + 5 * np.eye(x.shape[1]), x.T @ target)


def _true_class_scores(graph, edges, weights, u):
    """APS scores of the true classes on the graph with these edges."""
    odds = np.exp(3 * (_passed(graph, edges) @ weights))
    odds /= odds.sum(1, keepdims=True)
    own = odds[np.arange(graph.nodes), graph.y]
    return -(np.where(odds > own[:, None], odds, 0).sum(1) + u * own)


def _graph_sequence(seed, *, nodes, calibration, runs, delay, watch="exact", cap=10**9, **shape):
    """p-values of one growing graph; classes become known `delay` runs after a node's own run.

    watch: exact (reference on the current graph), strata (that, by degree), or stored (one urn over
    ranks among the calibration nodes, each on the graph of its own run).
    """
    graph = sample_graph(nodes, seed=seed, **shape)
    rng = np.random.default_rng([seed, 77])
    order = np.argsort(graph.node_time)
    order = order[graph.node_time[order] != NEVER_NS]
    first = rng.permutation(order[: 80 + calibration])
    weights, known = _trained(graph, first[:80]), first[80:]
    u, tie = rng.random(nodes), rng.uniform(1e-9, 1, nodes)
    batches = np.array_split(order[80 + calibration :], runs)
    urn, found = Urn.start(calibration), []
    for run in range(delay, runs):
        new = batches[run - delay]
        edges = graph.edges[:, graph.edge_time <= graph.node_time[batches[run]].max()]
        scores = _true_class_scores(graph, edges, weights, u)
        if watch == "stored":
            ranks = np.searchsorted(np.sort(scores[known]), scores[new])
            p, urn = urn.draw_all(ranks, tie[new])
        else:
            degrees = np.bincount(edges.ravel(), minlength=nodes)
            strata = degree_strata(degrees if watch == "strata" else np.ones(nodes))
            part = known[reference_sample(len(known), cap, seed=seed * 1_000 + run)]
            p = smoothed_p_values(
                scores[part],
                scores[new],
                tie[new],
                reference_strata=strata[part],
                strata=strata[new],
            )
            known = np.concatenate([known, new])
        found.append(p)
    return np.concatenate(found)


def _graphs(sequences, **settings):
    return (_graph_sequence(seed, **settings) for seed in range(sequences))


@pytest.mark.slow
def test_false_alarms_stay_below_delta_on_growing_graphs_with_message_passing():
    """Scores move in every run, classes come late. Negative control: an urn over stored ranks."""
    shape = {"nodes": 600, "calibration": 30, "runs": 8, "mean_degree": 12}
    found = _alarms(_graphs(120, delay=2, **shape))
    capped = _alarms(_graphs(120, delay=0, cap=60, **shape))
    shape |= {"nodes": 1_500, "runs": 20, "mean_degree": 20}
    stored = _alarms(_graphs(60, delay=0, watch="stored", **shape))
    assert max(found.values()) <= _most(120, DELTA)
    assert max(capped.values()) <= _most(120, DELTA)
    assert min(stored.values()) > _most(60, DELTA)


# Power --------------------------------------------------------------------------------------------


def _drifting(sequences, n, before, after, shift, seed):
    rng = np.random.default_rng(seed)
    for _ in range(sequences):
        scores = rng.normal(size=before + after)
        scores[before:] -= shift
        yield smoothed_p_values(rng.normal(size=n), scores, rng.uniform(1e-9, 1, before + after))


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_a_drift_of_the_scores_is_seen_within_a_few_hundred_labels(shift):
    """100 calibration nodes, 500 calm labels, then scores one standard deviation away."""
    found = _alarms(_drifting(40, n=100, before=500, after=300, shift=shift, seed=7), delta=0.01)
    calm = _alarms(_drifting(40, n=100, before=500, after=300, shift=0.0, seed=8), delta=0.01)
    assert min(found.values()) >= 38
    assert max(calm.values()) <= _most(40, 0.01)


def test_a_planted_drift_of_a_growing_graph_is_seen():
    shape = {"nodes": 1_000, "calibration": 100, "runs": 10, "delay": 1}
    found = _alarms(_graphs(20, drift=Drift(at=0.5, shift=1.0), **shape))
    calm = _alarms(_graphs(20, **shape))
    assert found["watch"] >= 12
    assert calm["watch"] <= _most(20, DELTA)


def test_words_name_the_labels_and_the_odds():
    calm = ExchangeabilityMonitor.start().after(np.random.default_rng(9).random(200))
    broken = ExchangeabilityMonitor.start().after(np.full(200, 0.01))
    assert calm.describe(0.01).startswith("no sign of a change in 200 labels")
    assert calm.alarm_at(0.01) is None
    assert broken.alarm_at(0.01) == 200
    assert "exchangeability is broken" in broken.describe(0.01)
    assert "at most 0.01" in broken.describe(0.01)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Martingale.start("casino"), "no martingale"),
        (lambda: Martingale.start("jumper").update(1.5), "outside"),
        (lambda: Martingale.start("jumper").update(float("nan")), "outside"),
        (lambda: Martingale.start("jumper").alarm(0.0), "delta 0"),
        (lambda: ExchangeabilityMonitor.start().alarm(1.5), "delta 1.5"),
    ],
)
def test_input_that_would_make_a_wrong_test_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


# The long lane ------------------------------------------------------------------------------------


@pytest.mark.statistics
@pytest.mark.parametrize("n", [30, 60, 100, 500])
@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_false_alarms_stay_below_delta_in_thousands_of_long_sequences(n, delta):
    found = _alarms(_split_sequences(3_000, n, 5_000, naive=False, seed=n + 1), delta)
    assert max(found.values()) <= _most(3_000, delta)


@pytest.mark.statistics
@pytest.mark.parametrize("calibration", [30, 100])
@pytest.mark.parametrize("delay", [0, 4])
def test_false_alarms_stay_below_delta_on_a_thousand_growing_graphs(calibration, delay):
    shape = {"nodes": 1_200, "calibration": calibration, "runs": 15, "delay": delay}
    found = _alarms(_graphs(1_000, **shape))
    assert max(found.values()) <= _most(1_000, DELTA)


@pytest.mark.statistics
def test_comparing_within_degrees_keeps_the_watch_calm_on_edge_sequences():
    """Approximate there: at most twice delta is asked for, and all degrees together alarm more."""
    shape = {"nodes": 1_200, "calibration": 100, "runs": 15, "delay": 0, "arrival": "edge"}
    found = _alarms(_graphs(600, watch="strata", **shape))
    mixed = _alarms(_graphs(600, watch="exact", **shape))
    assert max(found.values()) <= _most(600, 2 * DELTA)
    assert mixed["watch"] > found["watch"]
