"""Labels that were not given by chance: what weights by degree mend, and what tests see before.

Nodes of a graph with message passing are labelled by degree, or by how easy they are, or by chance.
Half of the labelled calibrate, the unlabelled are evaluated by the functions that scoring uses.
"""

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.jobs.scoring.shift import compare_with_calibration
from ringfence.models.calibration.comparison import LEVEL
from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
    rule_strata,
)
from ringfence.models.inference import graph_of, in_neighbours
from ringfence.models.rules.degree_bands import DEGREE_BANDS
from ringfence.models.rules.node_ex import NODE_EX
from ringfence.models.scores import aps, softmax64

CLASSES, NODES, EDGES, ALPHA = 4, 2_500, 5_000, 0.1
NODE, AUTO = Promise((ALPHA,), NODE_EX), Promise((ALPHA,), DEGREE_BANDS)
SHIFT = Promise((ALPHA,), DEGREE_BANDS, shift=True)


class World:
    """A graph whose nodes are known by degree ("degree"), by ease ("easy") or by chance."""

    def __init__(self, seed, labelled_by):
        rng = np.random.default_rng(seed)
        self.classes = rng.integers(0, CLASSES, NODES)
        features = rng.normal(size=(NODES, CLASSES)) + 1.1 * np.eye(CLASSES)[self.classes]
        weight = rng.pareto(2.2, NODES) + 0.2
        ends = rng.choice(NODES, (2, 4 * EDGES), p=weight / weight.sum())
        same = self.classes[ends[0]] == self.classes[ends[1]]
        keep = (ends[0] != ends[1]) & (same | (rng.random(4 * EDGES) < 0.25))
        near = in_neighbours(graph_of(ends[:, keep][:, :EDGES], NODES), np.arange(NODES))
        self.degree = near.counts()
        total = features.copy()
        np.add.at(total, np.repeat(near.rows, self.degree), features[near.sources])
        self.p = np.asarray(softmax64(2.0 * total / (1 + self.degree)[:, None]))
        self.scores = np.asarray(aps(self.p, rng.random(NODES)))
        chance = rng.random(NODES)
        own = self.scores[np.arange(NODES), self.classes]
        odds = {
            "degree": chance < np.where(self.degree > 4, 0.8, 0.06),
            "easy": chance < np.where(own > np.median(own), 0.5, 0.1),
            "chance": chance < 0.3,
        }[labelled_by]
        labelled = np.flatnonzero(odds)
        self.calibration = rng.permutation(labelled)[: len(labelled) // 2]
        self.due = rng.permutation(np.setdiff1d(np.arange(NODES), labelled))
        self.seed = seed

    def degrees(self, due):
        counts = degree_counts(self.degree)
        return NodeDegrees(self.degree[self.calibration], self.degree[due], counts)

    def covered(self, promise):
        """Share of the unlabelled nodes that are covered, and the mean size of their sets."""
        known = self.scores[self.calibration, self.classes[self.calibration]]
        scores = NodeScores(known, self.scores[self.due], known)
        found = evaluate(scores, self.degrees(self.due), promise).sets[0]
        hits = found[np.arange(len(self.due)), self.classes[self.due]]
        return hits.mean(), found.sum(axis=1).mean()

    def reported(self, promise, due):
        """Whether a run over some due nodes says that they differ."""
        rows = np.concatenate([self.calibration, due])
        entropy = -(self.p * np.log(self.p)).sum(axis=1)
        quantities = {"top probability": self.p.max(axis=1)[rows], "entropy": entropy[rows]}
        degrees = self.degrees(due)
        strata = rule_strata(promise, degrees)
        column = compare_with_calibration(quantities, degrees, strata, self.seed, promise.shift)
        return bool(column["sentence"])


def mean_covered(labelled_by, promise, repetitions=12):
    each = np.array([World(s, labelled_by).covered(promise) for s in range(repetitions)])
    return each[:, 0].mean(), each[:, 0].std(ddof=1) / repetitions**0.5


@pytest.mark.statistics
def test_weights_by_degree_mend_labels_that_were_given_by_degree():
    share, error = mean_covered("degree", SHIFT)
    assert 1 - ALPHA - 0.02 - 2 * error < share < 1 - ALPHA + 0.04


@pytest.mark.statistics
def test_without_weights_labels_given_by_degree_break_the_promise():
    """The negative control: everybody counts alike."""
    share, error = mean_covered("degree", NODE)
    assert share < 1 - ALPHA - 0.03 - 2 * error


@pytest.mark.statistics
def test_no_weights_mend_labels_that_were_given_to_easy_nodes():
    for promise in (NODE, SHIFT, AUTO):
        share, error = mean_covered("easy", promise)
        assert share < 1 - ALPHA - 0.03 - 2 * error


@pytest.mark.statistics
def test_weights_cost_little_where_labels_were_given_by_chance():
    plain, weighted = mean_covered("chance", NODE)[0], mean_covered("chance", SHIFT)[0]
    assert abs(plain - (1 - ALPHA)) < 0.015
    assert abs(weighted - plain) < 0.015


@pytest.mark.statistics
@pytest.mark.parametrize("promise", [NODE, AUTO, SHIFT], ids=["NodeEx", "auto", "shift"])
def test_nodes_that_are_alike_are_reported_to_differ_as_rarely_as_stated(promise):
    alarms = runs = 0
    for seed in range(60):
        world = World(seed, "chance")
        for batch in np.array_split(world.due[:400], 4):
            alarms, runs = alarms + world.reported(promise, batch), runs + 1
    assert alarms <= binom.ppf(0.999, runs, LEVEL)


@pytest.mark.statistics
def test_labels_given_by_degree_are_seen_before_any_class_is_known():
    worlds = [World(seed, "degree") for seed in range(20)]
    assert sum(world.reported(NODE, world.due) for world in worlds) >= 19


@pytest.mark.statistics
def test_a_difference_that_the_rule_accounts_for_is_not_reported():
    worlds = [World(seed, "degree") for seed in range(20)]
    assert sum(world.reported(SHIFT, world.due[:300]) for world in worlds) <= 4


@pytest.mark.statistics
def test_labels_given_to_easy_nodes_are_seen_in_some_first_runs():
    worlds = [World(seed, "easy") for seed in range(20)]
    assert sum(world.reported(NODE, world.due) for world in worlds) >= 5
