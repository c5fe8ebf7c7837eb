"""Metrics and paired intervals: right on small cases, narrow where ways agree, honest in a draw."""

import numpy as np
import pytest

from ringfence.models.comparison import paired
from ringfence.models.comparison.judgement import is_better, judge_difference
from ringfence.models.comparison.outcome import PROBABILITY_FLOOR, Outcome, Sets, align
from ringfence.models.comparison.paired import compare

CLASSES = ("a", "b", "c")


def chances(said, sure=0.8):
    """Probabilities whose largest is at the class that is said."""
    out = np.full((len(said), 3), (1 - sure) / 2)
    out[np.arange(len(said)), said] = sure
    return out


def test_metrics_are_those_of_the_textbook():
    truth, said = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 0])
    sets = Sets(np.array([1, 2, 1, 1, 3, 0]), np.array([True, True, False, True, True, False]))
    own = compare(truth, CLASSES, [Outcome("x", chances(said), sets)]).own("x")
    values = {name: one.value for name, one in own.metrics.items()}
    assert values["accuracy"] == pytest.approx(4 / 6)
    assert values["macro_f1"] == pytest.approx((2 * 2 / 6 + 2 * 2 / 5 + 0) / 3)
    assert values["log_loss"] == pytest.approx(-(4 * np.log(0.8) + 2 * np.log(0.1)) / 6)
    assert values["set_size"] == pytest.approx(8 / 6)
    assert values["singleton_hits"] == pytest.approx(2 / 6)
    assert [one.value for one in own.recall.values()] == pytest.approx([2 / 3, 1, 0])


def test_a_class_that_a_model_does_not_know_is_missed_and_costs_a_finite_loss():
    known = align(np.array([[0.3, 0.7]]), ("a", "b"), CLASSES)
    found = compare(np.array([2]), CLASSES, [Outcome("x", known)]).own("x")
    assert found.metrics["log_loss"].value == pytest.approx(-np.log(PROBABILITY_FLOOR))
    assert found.recall["c"].value == 0
    assert "a" not in found.recall  # nobody has it
    assert "set_size" not in found.metrics  # there are no sets


def noisy(rng, truth, accuracy):
    wrong = (truth + rng.integers(1, 3, len(truth))) % 3
    return np.where(rng.random(len(truth)) < accuracy, truth, wrong)


def test_what_is_hard_for_both_cancels_out_of_the_difference():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    one = noisy(rng, truth, 0.7)
    other = np.where(rng.random(400) < 0.04, truth, one)  # nearly the same, a little better
    said = (one, other, noisy(rng, truth, 0.7))
    found = compare(
        truth, CLASSES, [Outcome(n, chances(s)) for n, s in zip("xyz", said, strict=True)]
    )
    alike = found.difference("y", "x").metrics["accuracy"]
    unlike = found.difference("z", "x").metrics["accuracy"]
    assert judge_difference("accuracy", alike.as_json()) == "better"
    assert alike.high - alike.low < 0.5 * (unlike.high - unlike.low)


def test_the_interval_holds_the_true_difference_about_as_often_as_it_says(monkeypatch):
    monkeypatch.setattr(paired, "REPLICATES", 200)
    rng, held = np.random.default_rng(1), 0
    for seed in range(60):
        truth = rng.integers(0, 3, 150)
        ways = [Outcome("x", chances(noisy(rng, truth, 0.75)))]
        ways += [Outcome("y", chances(noisy(rng, truth, 0.6)))]
        one = compare(truth, CLASSES, ways, seed).difference("x", "y").metrics["accuracy"]
        held += one.low <= 0.15 <= one.high
    assert held >= 51  # 57 expected; below 51 has a chance of about one in a hundred


def test_equal_ways_are_no_better_and_the_rule_asks_every_class():
    truth = np.repeat([0, 1, 2], [100, 60, 40])
    same = compare(truth, CLASSES, [Outcome("x", chances(truth)), Outcome("y", chances(truth))])
    equal = same.difference("x", "y").as_json()
    assert judge_difference("accuracy", equal["metrics"]["accuracy"]) == "no better"
    nodes = dict(zip(CLASSES, (100, 60, 40), strict=True))
    assert not is_better("accuracy", equal, nodes, 0.05).better
    worse = np.where(np.arange(200) < 90, 1, truth)  # most of a is lost
    robbed = np.where((truth == 2) & (np.arange(200) % 2 == 0), 0, truth)  # half of c is lost
    found = compare(truth, CLASSES, [Outcome("x", chances(robbed)), Outcome("y", chances(worse))])
    difference = found.difference("x", "y").as_json()
    refused = is_better("accuracy", difference, nodes, 0.05)
    assert not refused.better
    assert "class c is found less often" in refused.words
    assert is_better("accuracy", difference, nodes, 0.6).better
    assert is_better("accuracy", difference, {**nodes, "c": 9}, 0.05).better  # too few to judge
