"""Classes that come late, early or not at all, where nothing changes.

The rules before are the negative controls. Lives are those of `benchmarks.late_classes`, played
with the functions that scoring uses.
"""

import importlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(monkeypatch):
    """The names of the benchmark's modules, which are no part of the package."""
    monkeypatch.syspath_prepend(ROOT)
    modules = [importlib.import_module(f"benchmarks.{name}") for name in
               ("late_replay", "late_classes")]  # fmt: skip
    return SimpleNamespace(**{k: v for module in modules for k, v in vars(module).items()})


def quarters(bench, world, lives, settled_now=True):
    covered = [bench.play_classes(world, seed, settled_now).covered for seed in range(lives)]
    return np.array([part.mean() for part in np.array_split(np.mean(covered, axis=0), 4)])


def worlds(bench, *names):
    return [world for world in bench.class_worlds() if world.name in names]


def test_late_classes_swing_the_rule_of_before_and_not_that_of_today(bench):
    world = bench.LevelWorld("", 60, runs=400)
    then, today = (bench.play_levels(world, rule, 0) for rule in ("then", "today"))
    assert min(today.levels) > 0.07
    assert min(today.covered) > 0.75
    assert min(then.levels) <= 0.0  # the negative control


def test_an_early_class_does_not_answer_for_the_others(bench):
    (world,) = worlds(bench, "hard 10 % at once, others 30 late")
    assert np.abs(quarters(bench, world, 2) - 0.9).max() < 0.03
    assert np.abs(quarters(bench, world, 2, settled_now=False) - 0.9).max() > 0.05  # the control


@pytest.mark.statistics
@pytest.mark.parametrize("delay", [1, 7, 14, 31, 45, 60, 90])
@pytest.mark.parametrize("nodes", [5, 100])
def test_no_delay_makes_the_level_swing(bench, delay, nodes):
    world = bench.LevelWorld("", delay, nodes)
    lives = [bench.play_levels(world, "today", seed) for seed in range(8)]
    levels = np.array([life.levels for life in lives])
    assert np.mean(levels <= 0.0) < 0.001
    covered = np.array([life.covered for life in lives])
    spread = 4 * (0.09 / nodes / covered.size) ** 0.5
    assert abs(covered.mean() - 0.9) < spread + miss_bound(world)
    if nodes == 100:
        assert np.quantile(covered, 0.05) >= 0.84
    if delay >= 45:
        then = [bench.play_levels(world, "then", seed).levels for seed in range(8)]
        assert np.mean(np.array(then)[:, 300:] <= 0.0) > 0.05  # the negative control


def miss_bound(world):
    """The drift of the level over a life, in coverage: what its telescoped sum leaves."""
    return 0.1 / (0.05 * world.runs)


@pytest.mark.statistics
@pytest.mark.parametrize("lump", [30, 60])
def test_labels_in_lumps_are_taken_in_run_by_run(bench, lump):
    world = bench.LevelWorld("", lump, lump=lump)
    assert all(min(bench.play_levels(world, "today", seed).levels) > 0.06 for seed in range(8))
    assert any(min(bench.play_levels(world, "then", seed).levels) <= 0.0 for seed in range(8))


@pytest.mark.statistics
def test_half_known_lives_with_random_delays_keep_their_coverage(bench):
    world = bench.LevelWorld("", 30, known=0.7)
    covered = [np.mean(bench.play_levels(world, "today", seed).covered) for seed in range(8)]
    assert abs(np.mean(covered) - 0.9) < 0.005


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("name", "off_before"),
    [
        ("hard 10 % at once, others 14 late", 0.05),
        ("hard 10 % at once, others 30 late", 0.05),
        ("easy at once, hard 10 % 14 late", 0.015),
        ("easy at once, hard 10 % 30 late", 0.025),
        ("hard 4.5 % 60 late", 0.025),
        ("rare 0.6 % a year late", 0.0),
        ("all known at the next run", 0.0),
        ("monthly lumps", 0.0),
        ("7 late, 70 % known", 0.0),
    ],
)
def test_early_and_late_classes_move_no_coverage_where_nothing_changes(bench, name, off_before):
    (world,) = worlds(bench, name)
    assert np.abs(quarters(bench, world, 10) - 0.9).max() < 0.015
    before = quarters(bench, world, 10, settled_now=False)
    assert np.abs(before - 0.9).max() > off_before  # the negative control, where there is one


@pytest.mark.statistics
def test_a_class_that_stops_coming_stops_no_level_for_the_others(bench):
    """The level goes on; of the class itself nothing is promised, and its coverage says so."""
    (world,) = worlds(bench, "10 % stops coming at run 60, others")
    assert world.uncounted == 3
    lives = [bench.play_classes(world, seed) for seed in range(6)]
    covered = np.mean([life.covered for life in lives], axis=0)
    for quarter in np.array_split(covered, 4):
        assert abs(quarter.mean() - 0.9) < 0.02
    moved = [np.flatnonzero(np.diff(life.levels)) for life in lives]
    assert min(steps.max() for steps in moved) > world.runs - 60  # no life stands still for ever
    everyone = [bench.play_classes(replace(world, uncounted=None), seed) for seed in range(6)]
    last = np.mean([life.covered[-60:] for life in everyone])
    assert last < covered[-60:].mean() - 0.005  # the control: with its nodes coverage is lower


@pytest.mark.statistics
def test_a_class_that_nobody_has_seen_keeps_the_calibration_of_the_training(bench):
    """Within the year nothing says that it is gone; a declared delay lets the level go on."""
    (world,) = worlds(bench, "6 % a year late, others")
    life = bench.play_classes(replace(world, uncounted=None), 0)
    assert set(life.levels) == {bench.ALPHA}
    assert abs(np.mean(life.covered) - 0.9) < 0.04  # three standard deviations of 500 such nodes
    declared = bench.play_classes(replace(world, declared=30), 0)
    assert len(set(declared.levels)) > 100


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("name", "off_before"),
    [
        ("hard 10 % at once, others 150 late", 0.05),
        ("easy at once, hard 10 % 200 late", 0.03),
    ],
)
def test_classes_that_come_more_than_90_runs_late_move_no_coverage(bench, name, off_before):
    (world,) = worlds(bench, name)
    assert np.abs(quarters(bench, world, 3) - 0.9).max() < 0.015
    lives = [
        bench.play_classes(world, seed, wait=bench.FORMER_WAIT_RUNS).covered for seed in range(3)
    ]
    before = [part.mean() for part in np.array_split(np.mean(lives, axis=0), 4)]
    assert np.abs(np.array(before) - 0.9).max() > off_before  # the negative control


@pytest.mark.statistics
def test_classes_that_are_corrected_later_cost_larger_sets_and_no_coverage(bench):
    (world,) = worlds(bench, "7 late, 2 % wrong for 30 runs more")
    corrected = quarters(bench, world, 6)
    right = quarters(bench, replace(world, wrong=0.0), 6)
    assert np.abs(right - 0.9).max() < 0.01
    assert (corrected > right + 0.005).all()
    assert corrected.max() < 0.93
