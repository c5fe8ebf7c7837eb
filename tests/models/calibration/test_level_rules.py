"""Rules for the level that are measured beside the product's own (`benchmarks.level_rules`)."""

import importlib
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ringfence.models.sample.drift import drifting_graph

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def bench(monkeypatch):
    """The names of the benchmark's module, which is no part of the package."""
    return names_of(monkeypatch, "level_rules")


def names_of(monkeypatch, *modules):
    monkeypatch.syspath_prepend(ROOT)
    names = {}
    for module in modules:
        names |= vars(importlib.import_module(f"benchmarks.{module}"))
    return SimpleNamespace(**names)


def levels(rule, runs=30, delay=3, seed=1):
    """Levels of runs whose p-values sink with time and are known `delay` runs later."""
    rng = np.random.default_rng(seed)
    p_of = [rng.random(80) ** (1.0 + 0.1 * run) for run in range(runs)]
    said = []
    for run in range(runs):
        if run >= delay:
            rule.answer(run - delay, p_of[run - delay])
        said.append(rule.level_of(run, 0.0))
    return said


@pytest.mark.parametrize(
    "make",
    [
        lambda bench: bench.AggregatedRule(steps=(0.05,)),
        lambda bench: bench.AggregatedRule(steps=(0.05, 0.05)),
        lambda bench: bench.IntegratedRule(step=0.05, gain=0.0),
        lambda bench: bench.ForecastRule(bench.AdaptiveRule(0.05), bench.SurpriseForecast()),
    ],
)
def test_rules_that_are_one_step_give_the_levels_of_one_step(bench, make):
    assert levels(make(bench)) == pytest.approx(levels(bench.AdaptiveRule(0.05)))


@pytest.mark.parametrize("name", ["AggregatedRule", "IntegratedRule", "RejudgedRule"])
def test_other_rules_give_other_levels(bench, name):
    """The negative control."""
    rule = getattr(bench, name)()
    assert levels(rule) != pytest.approx(levels(bench.AdaptiveRule(0.05)))


def test_weights_of_steps_follow_the_pinball_loss(bench):
    rule = bench.AggregatedRule(steps=(0.1, 0.2), eta=2.0, sigma=0.5)
    assert rule.level_of(0, 0.0) == pytest.approx(0.1)
    rule.answer(0, np.array([0.05, 0.3]))  # half missed: both steps go down, by different ways
    assert rule.levels == pytest.approx([0.06, 0.02])
    assert rule.weights == pytest.approx([0.5, 0.5])
    rule.level_of(1, 0.0)
    rule.answer(1, np.array([0.04]))  # only the first level leaves it out
    first = 0.5 * math.exp(-2.0 * 0.9 * 0.02)
    second = 0.5 * math.exp(-2.0 * 0.1 * 0.02)
    assert rule.weights[0] == pytest.approx(0.5 * first / (first + second) + 0.25)


def test_the_integrator_saturates(bench):
    rule = bench.IntegratedRule(step=0.0, gain=1.0, runs=100)
    assert [rule.level_of(run, 0.0) for run in range(4)] == [0.1] * 4
    for run in range(4):
        rule.answer(run, np.zeros(5))
    angle = 3.6 * math.log(5) / (2 / math.pi * (1 - 0.01) * 5)
    assert angle > math.pi / 2
    assert rule.level_of(4, 0.0) == -math.inf


def test_a_weekday_that_needs_another_level_gets_one(bench):
    forecast = bench.WeekdayForecast()
    for day in range(28):
        forecast.learn(day, 0.03 if day % 7 == 2 else 0.1)
    assert forecast.shift_of(30, 0.0) < -0.03 < 0.0 < forecast.shift_of(31, 0.0)


@pytest.mark.long  # networks are trained
def test_judged_runs_replay_to_the_sets_of_scoring(monkeypatch):
    modules = ("drift", "drift_replay", "judged_runs", "level_rules")
    bench = names_of(monkeypatch, *modules)
    graph = drifting_graph(np.random.default_rng(3), "sudden", start=300, runs=14, per_run=40)
    sequence = bench.graph_sequence(graph, seed=3)
    mode = bench.Mode("", window=200, step=0.05, bands=bench.LIVING, score="DAPS")
    judged = bench.judge_runs(sequence, mode, 0.1, first=1)
    whole = bench.replay(sequence, mode, 0.1).summary(4)
    assert bench.replay_rule(judged, bench.AdaptiveRule(0.05)).summary(4) == whole
    assert bench.replay_rule(judged, bench.RejudgedRule(0.3)).summary(4) != whole
    assert bench.replay_known_levels(judged, 1, 0.1).worst_block(1) >= 0.9
