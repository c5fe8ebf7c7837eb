"""Training on all that had arrived: newcomers are told apart better, and covered as promised."""

import importlib

import pytest

pytestmark = pytest.mark.statistics
REPETITIONS = 16


def test_newcomers_are_covered_as_promised_and_lose_less_than_by_the_rule_of_older_versions():
    world = importlib.import_module("benchmarks.seen_in_training")
    rows = {row["seen"]: row for row in world.measure(("trees",), REPETITIONS)}
    arrived, before = rows["arrived"], rows["learnt"]
    assert abs(arrived["covered"] - 0.9) < 4 * arrived["covered_se"] + 0.01
    error = arrived["log_loss_se"] + before["log_loss_se"]
    assert arrived["log_loss"] < before["log_loss"] - 2 * error  # the control is the older rule
