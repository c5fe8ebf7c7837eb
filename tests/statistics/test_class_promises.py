"""A rare class under a promise of its own, with message passing: as often missed as promised.

The worlds are those of `test_degree_bands` with one rare class. Under node exchangeability the
promise of each class is exact, and the rule for all nodes together is the negative control: it
keeps the average and misses the rare class. Where edges arrive in random order nothing is proved
for a class; what is left there is measured and stands in docs/mathematics.md.
"""

import numpy as np
import pytest

from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
)
from ringfence.models.inference import graph_of, in_neighbours
from ringfence.models.rules.registry import rule_named
from ringfence.models.scores.node_scores import node_scores
from tests.statistics.test_degree_bands import ALPHA, BATCHES, NODES, probabilities
from tests.statistics.test_degree_bands import world as plain_world

RARE, REPETITIONS = 0.06, 12


def world(rng, order):
    """One class of four is rare: most of its nodes become class 0, and look like it."""
    classes, features, edges, edge_time, node_time = plain_world(rng, order)
    moved = (classes == 3) & (rng.random(NODES) > RARE * 4)
    features[moved] += 1.1 * (np.eye(4)[0] - np.eye(4)[3])
    return np.where(moved, 0, classes), features, edges, edge_time, node_time


def rare_and_all(seed, order, rule, per_class):
    """Hits and nodes of the rare class, hits and nodes of all, on arrival."""
    rng = np.random.default_rng(seed)
    classes, features, edges, edge_time, node_time = world(rng, order)
    u, horizon = rng.random(NODES), edge_time.max() + 1
    start = 0.4 * horizon
    there = np.flatnonzero(node_time <= start)
    calibration = rng.permutation(there)[: len(there) // 2]
    counts, promise = np.zeros(4), Promise((ALPHA,), rule_named(rule))
    for batch in range(BATCHES):
        now = start + (horizon - start) * (batch + 1) / BATCHES
        before = start + (horizon - start) * batch / BATCHES
        due = np.flatnonzero((node_time > before) & (node_time <= now))
        graph = graph_of(edges[:, edge_time <= now], NODES)
        wanted = np.concatenate([calibration, due])
        found = node_scores("TPS", probabilities(features, graph)[wanted], u[wanted], {}, None)
        n, truth = len(calibration), classes[calibration]
        degree = np.diff(in_neighbours(graph, np.arange(NODES)).offsets)
        degrees = NodeDegrees(
            degree[calibration], degree[due], degree_counts(degree[node_time <= now])
        )
        strata = (
            promise.rule.class_strata(promise, degrees, truth, np.full(4, ALPHA))
            if per_class
            else None
        )
        known = found[np.arange(n), truth]
        done = evaluate(NodeScores(known, found[n:], known), degrees, promise, strata=strata)
        hit = done.sets[0][np.arange(len(due)), classes[due]]
        rare = classes[due] == 3
        counts += [hit[rare].sum(), rare.sum(), hit.sum(), len(due)]
    return counts


def coverage(order, rule="auto", per_class=True):
    """Coverage of the rare class and of all, each with its standard error over repetitions."""
    found = np.stack([rare_and_all(seed, order, rule, per_class) for seed in range(REPETITIONS)])
    shares = np.stack([found[:, 0] / found[:, 1], found[:, 2] / found[:, 3]])
    return shares.mean(axis=1), shares.std(axis=1, ddof=1) / np.sqrt(REPETITIONS)


@pytest.mark.statistics
@pytest.mark.parametrize("rule", ["auto", "NodeEx"])
def test_where_nodes_come_in_random_order_the_rare_class_is_covered_as_promised(rule):
    (rare, every), (rare_error, every_error) = coverage("node", rule)
    print(f"node order, {rule}: rare {rare:.3f} ± {rare_error:.3f}, all {every:.3f}")
    assert rare > 1 - ALPHA - 3 * rare_error
    assert rare < 1 - ALPHA + 0.05 + 3 * rare_error  # rounding up of 1 / (n_c + 1) at most
    assert every > 1 - ALPHA - 3 * every_error


@pytest.mark.statistics
def test_the_rule_for_all_nodes_together_misses_the_rare_class():
    """The negative control."""
    (rare, every), (rare_error, _) = coverage("node", per_class=False)
    print(f"node order, marginal: rare {rare:.3f} ± {rare_error:.3f}, all {every:.3f}")
    assert every > 1 - ALPHA - 0.02
    assert rare < 1 - ALPHA - 0.05 - 3 * rare_error


@pytest.mark.statistics
def test_where_edges_come_in_random_order_the_rare_class_keeps_most_of_its_promise():
    (rare, every), (rare_error, _) = coverage("edge")
    (plain, _), (plain_error, _) = coverage("edge", "NodeEx")
    print(
        f"edge order: rare {rare:.3f} ± {rare_error:.3f}, all {every:.3f}; "
        f"without bands rare {plain:.3f} ± {plain_error:.3f}"
    )
    assert rare > 0.83 - 3 * rare_error
    assert every > 1 - ALPHA - 0.03


def tally(name, known, covered, n, seq):
    counts = dict.fromkeys(COUNTS, 0) | {"evaluated": known, "known": known, "covered": covered}
    return Tally(
        seq=seq, model="m", rule="auto", score="TPS", alpha=ALPHA, options='{"promise":"class"}',
        n_calibration=n, effective_calibration=float(n), name=name, counts=counts,
        sums=dict.fromkeys(SUMS, 0.0), promise="class",
        strata=((StratumCounts(n, float(n), ALPHA, known, covered, name),),),
    )  # fmt: skip


@pytest.mark.statistics
def test_looking_at_many_classes_rarely_alarms_when_all_is_well():
    """20 classes over 12 runs, 200 times: a false alarm in one of a hundred at most, by the law."""
    rng, alarmed, control = np.random.default_rng(5), 0, 0
    for _ in range(200):
        chance = rng.beta(60 + 1 - 6, 6, 20)  # coverage of each class given its calibration nodes
        hits = rng.binomial(30, chance, (12, 20))
        tallies = [
            tally(f"c{y}", 30, int(hits[t, y]), n=60, seq=t + 1)
            for t in range(12)
            for y in range(20)
        ]
        whole = [tally("", 600, int(hits[t].sum()), n=1200, seq=t + 1) for t in range(12)]
        rows = [row for row in coverage_rows(whole, tallies, (), 1) if row.slice == "class"]
        alarmed += any(row.verdict == "broken" for row in rows)
        control += any(row.p_value / 20 < 0.01 for row in rows)  # without paying for 20 classes
    assert alarmed <= 6  # binomial(200, .01): more with probability .004
    assert control > 12
