"""Strata inside classes and groups: nobody is judged by nodes of another class or group."""

import numpy as np
import pytest

from ringfence.models.conformal.bands import MIN_NODES_OF_PART
from ringfence.models.conformal.evaluate import NodeDegrees, NodeScores, Promise, evaluate
from ringfence.models.promise.per_group import NodeGroups, group_strata, name_group
from ringfence.models.rules.degree_bands import DEGREE_BANDS
from ringfence.models.rules.node_ex import NODE_EX
from ringfence.models.rules.registry import rule_named


def degrees(calibration, due, graph=None):
    counts = np.bincount(np.concatenate([calibration, due]) if graph is None else graph)
    return NodeDegrees(np.asarray(calibration), np.asarray(due), counts)


def class_strata(promise, given, classes, alphas):
    """Who judges whom under a promise per class: inside each class by the promise's rule."""
    return promise.rule.class_strata(promise, given, classes, alphas)


@pytest.fixture
def some():
    rng = np.random.default_rng(3)
    return degrees(rng.integers(0, 20, 400), rng.integers(0, 25, 150)), rng.integers(0, 3, 400)


@pytest.mark.parametrize("rule", ["auto", "NodeEx", "EdgeEx"])
def test_each_due_node_is_judged_once_for_every_class_by_nodes_of_that_class(some, rule):
    given, classes = some
    if rule == "EdgeEx":
        given = NodeDegrees(given.calibration, np.maximum(given.due, 1), given.counts)
    found = class_strata(Promise((0.1,), rule_named(rule)), given, classes, np.full(3, 0.1))
    judged = np.zeros((150, 3), np.int64)
    for one in found:
        assert (classes[one.calibration] == one.class_index).all()
        judged[one.due, one.class_index] += 1
    assert (judged == 1).all()
    assert len({(one.band, one.class_index) for one in found}) == len(found)


def test_a_large_class_has_bands_and_a_small_one_is_a_single_stratum():
    near = np.concatenate([np.tile([1, 9], 100), np.tile([1, 9], 29)])
    classes = np.repeat([0, 1], [200, 58])
    found = class_strata(
        Promise((0.1,), DEGREE_BANDS), degrees(near, np.array([1, 9])), classes, np.full(2, 0.1)
    )
    sizes = {(one.band, one.class_index): len(one.calibration) for one in found}
    assert sorted(sizes.values()) == [58, 58, 100, 100]
    assert MIN_NODES_OF_PART == 60


def test_a_class_with_a_small_alpha_has_wider_bands():
    rng = np.random.default_rng(4)
    given, classes = degrees(rng.integers(0, 30, 600), rng.integers(0, 30, 60)), np.repeat(0, 600)

    def bands(alpha):
        found = class_strata(Promise((0.2,), DEGREE_BANDS), given, classes, np.array([alpha]))
        return len({one.band for one in found})

    assert bands(0.2) > bands(0.05) > bands(0.005) == 1


def test_a_class_without_calibration_nodes_is_in_every_set(some):
    given, classes = some
    classes = np.where(classes == 2, 1, classes)
    promise = Promise((0.1,), DEGREE_BANDS)
    rng = np.random.default_rng(1)
    scores = NodeScores(rng.random(400), rng.random((150, 3)), rng.random(9))
    strata = class_strata(promise, given, classes, np.full(3, 0.1))
    done = evaluate(scores, given, promise, strata=strata)
    assert (done.p_values[:, 2] == 1.0).all()
    assert done.sets[0][:, 2].all()
    assert not done.sets[0][:, 0].all()
    unbounded = {one.class_index for one in done.thresholds if not np.isfinite(one.threshold)}
    assert unbounded == {2}


def test_each_class_is_held_to_its_own_alpha(some):
    given, classes = some
    alphas = np.array([0.05, 0.3, 0.1])
    promise = Promise((0.1,), NODE_EX, levels=alphas[None, :])
    rng = np.random.default_rng(2)
    scores = NodeScores(rng.random(400), rng.random((150, 3)), rng.random(9))
    done = evaluate(scores, given, promise, strata=class_strata(promise, given, classes, alphas))
    for y, alpha in enumerate(alphas):
        own = scores.known[classes == y]
        at_most = (own[None, :] <= scores.due[:, [y]]).sum(axis=1)
        assert (done.sets[0][:, y] == ((at_most + 1) / (len(own) + 1) > alpha)).all()


@pytest.mark.parametrize("rule", ["auto", "NodeEx", "EdgeEx"])
def test_due_nodes_are_judged_by_their_own_group_alone(rule):
    rng = np.random.default_rng(5)
    given = degrees(rng.integers(1, 20, 300), rng.integers(1, 20, 90))
    names = np.array(["north", "south", None, "west"], object)
    groups = NodeGroups(
        "region", list(names[rng.integers(0, 3, 300)]), list(names[rng.integers(0, 4, 90)])
    )
    found = group_strata(Promise((0.1,), rule_named(rule)), given, groups)
    seen = np.zeros(90, np.int64)
    for one in found:
        own = {groups.calibration[i] for i in one.calibration} | {groups.due[i] for i in one.due}
        assert len(own) == 1
        seen[one.due] += 1
    assert (seen == 1).all()
    empty = [one.band for one in found if not len(one.calibration)]
    assert empty == ["region=west"]
    assert groups.never_seen() == {"west": groups.due.count("west")}


def test_a_group_never_seen_gets_full_sets_and_a_threshold_of_minus_infinity():
    given = degrees(np.ones(50, np.int64), np.ones(2, np.int64))
    groups = NodeGroups("region", ["north"] * 50, ["north", "west"])
    promise = Promise((0.1,), DEGREE_BANDS)
    scores = NodeScores(np.linspace(0.5, 1, 50), np.zeros((2, 3)), np.ones(3))
    done = evaluate(scores, given, promise, strata=group_strata(promise, given, groups))
    assert done.sets[0].tolist() == [[False] * 3, [True] * 3]
    by_band = {one.band: (one.threshold, one.n_calibration) for one in done.thresholds}
    assert by_band["region=west"] == (-np.inf, 0)


def test_no_value_of_a_group_can_be_taken_for_a_band_of_another_one():
    rng = np.random.default_rng(6)
    near = rng.integers(0, 9, 400)
    large = group_strata(
        Promise((0.1,), DEGREE_BANDS),
        degrees(near, near),
        NodeGroups("region", ["north"] * 400, ["north"] * 400),
    )
    bands = [one.band for one in large]
    assert len(bands) > 2
    for band in bands:  # a hostile value that repeats the name of a band
        value = band.partition("region=")[2] + band
        assert name_group("region", value) not in bands
