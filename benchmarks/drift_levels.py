"""Other rules for the level than adaptive conformal inference: DtACI, conformal PID, forecasts.

python -m benchmarks.drift_levels [--quick] [--repetitions N] [--only WORLD ...]
python -m benchmarks.drift_levels --flights FOLDER [--early] --seed N

1. The simulated worlds of `benchmarks.drift`, within bands of degree, as new models run.
2. With --flights the flights of April to December by day, typed SAGE on their graph, classes known
   one, three and seven days late; and what levels would reach that somebody knew beforehand. With
   --early those of February and March, with a network of January: where constants that the papers
   leave open were chosen, so that April to December only confirm.

Rules are in `benchmarks.level_rules`. ± is one standard error over repetitions or networks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import torch

from benchmarks.drift import ALPHA, LIVING, graph_sequence, keep_seed, worlds
from benchmarks.drift_flights import RAPS_STRONG
from benchmarks.drift_replay import Mode, Result
from benchmarks.drift_typed import typed_flights, typed_sequence
from benchmarks.judged_runs import (
    JudgedRun,
    correlate_needs,
    judge_runs,
    replay_known_levels,
    replay_rule,
)
from benchmarks.level_rules import (
    AdaptiveRule,
    AggregatedRule,
    FixedRule,
    ForecastRule,
    IntegratedRule,
    LevelRule,
    RejudgedRule,
    SurpriseForecast,
    WeekdayForecast,
)
from benchmarks.measuring import show

Summaries = dict[str, dict[str, float]]

SIMULATED = ("stationary", "gradual", "sudden", "seasonal")
FEBRUARY, EARLY_DAYS = date(2013, 2, 1).toordinal(), 59
WINDOW, SMALL_WINDOW = 5_000, 500
DELAYS = (1, 3, 7)
RULES: dict[str, Callable[[int], LevelRule]] = {
    "alpha itself": lambda _runs: FixedRule(),
    "one step, .02": lambda _runs: AdaptiveRule(0.02),
    "one step, .05": lambda _runs: AdaptiveRule(0.05),
    "one step, .08": lambda _runs: AdaptiveRule(0.08),
    "DtACI": lambda _runs: AggregatedRule(),
    "PID: step and integrator": lambda runs: IntegratedRule(runs=runs),
    "PID: integrator": lambda runs: IntegratedRule(0.0, runs=runs),
    "PID: integrator, gain .1": lambda runs: IntegratedRule(0.0, 0.1, runs),
    "PID + entropy": lambda runs: ForecastRule(IntegratedRule(runs=runs), SurpriseForecast()),
    "PID + weekday": lambda runs: ForecastRule(IntegratedRule(runs=runs), WeekdayForecast()),
    "one step, .05 + entropy": lambda _runs: ForecastRule(AdaptiveRule(), SurpriseForecast()),
    "one step, .05 + weekday": lambda _runs: ForecastRule(AdaptiveRule(), WeekdayForecast()),
    "rejudged, step .05": lambda _runs: RejudgedRule(0.05),
}
NEAR = ("alpha itself", "one step, .05", "DtACI")
"""Rules that are tried with other delays as well."""

SOME = (*NEAR, "PID: step and integrator")
WAYS = {
    ", RAPS": (Mode("", WINDOW, score="RAPS"), SOME),
    f", {RAPS_STRONG}": (Mode("", WINDOW, score=RAPS_STRONG), ("one step, .08",)),
    ", weights by entropy": (Mode("", WINDOW, by_entropy=True), SOME),
    ", frozen calibration": (Mode(""), SOME),
}
"""Another score, weights or calibration set, and the rules that are tried with it."""


def replay_rules(
    judged: list[JudgedRun], block: int, names: Sequence[str] = tuple(RULES), suffix: str = ""
) -> Summaries:
    """Replay some rules over the same p-values."""
    done = {}
    for name in names:
        result = replay_rule(judged, RULES[name](len(judged)))
        done[name + suffix] = summarize(name + suffix, result, block)
    return done


def replay_known(judged: list[JudgedRun], week: int, suffix: str = "") -> Summaries:
    """Replay the levels that days, weeks and the whole time would have needed."""
    blocks = {"of the whole time": len(judged), "of each week": week, "of each day": 1}
    done = {}
    for which, block in blocks.items():
        name = f"known beforehand, {which}{suffix}"
        done[name] = summarize(name, replay_known_levels(judged, block, ALPHA), week)
    done[name] |= correlate_needs(judged, ALPHA)
    return done


def summarize(name: str, result: Result, block: int) -> dict[str, float]:
    """Return and print what a rule reached, with the worst stretch wherever it starts."""
    summary = result.summary(block) | {"worst_any": result.worst_stretch(block)}
    show({"rule": name, **summary})
    return summary


def measure_world(name: str, repetition: int) -> Summaries:
    """Draw one simulated world, train its network and replay every rule."""
    graph = worlds()[name](np.random.default_rng([7, repetition]))
    sequence = graph_sequence(graph, repetition)
    mode = Mode("", SMALL_WINDOW, 0.05, bands=LIVING, score="DAPS")
    return replay_rules(judge_runs(sequence, mode, ALPHA, 1), block=4)


def measure_flights(folder: Path, seed: int, quick: bool) -> dict[str, Summaries]:
    """Train one network on January to March and replay every rule on the days after."""
    part = {"days": 42, "trained": 5_000} if quick else {}
    graph, network = typed_flights(folder, seed, **part)
    done: dict[str, Summaries] = {}
    for delay in DELAYS:
        sequence, first = typed_sequence(graph, network, delay)
        judged = judge_runs(sequence, Mode("", WINDOW), ALPHA, first)
        some = tuple(RULES) if delay == max(DELAYS) else NEAR
        rows = replay_rules(judged, 7, some)
        rows |= replay_known(judged, 7)
        done[f"April to December, {delay} days late"] = rows
    for suffix, (mode, some) in WAYS.items():
        judged = judge_runs(sequence, mode, ALPHA, first)
        rows |= replay_rules(judged, 7, some, suffix)
        if mode.score == "RAPS":
            rows |= replay_known(judged, 7, suffix)
    return done


def measure_early(folder: Path, seed: int) -> dict[str, Summaries]:
    """Train one network on January and replay every rule on February and March."""
    graph, network = typed_flights(folder, seed, EARLY_DAYS, first_day=FEBRUARY)
    sequence, first = typed_sequence(graph, network, max(DELAYS))
    judged = judge_runs(sequence, Mode("", WINDOW), ALPHA, first)
    rows = replay_rules(judged, 7) | replay_known(judged, 7)
    return {f"February and March, {max(DELAYS)} days late": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--flights", type=Path)
    parser.add_argument("--early", action="store_true", help="with --flights: February and March")
    parser.add_argument("--seed", type=int, default=2, help="with --flights: seed of the network")
    parser.add_argument("--repetitions", type=int, default=13)
    parser.add_argument("--only", nargs="+", choices=SIMULATED, default=SIMULATED)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.flights:
        done = (
            measure_early(options.flights, options.seed)
            if options.early
            else measure_flights(options.flights, options.seed, options.quick)
        )
        keep_seed("drift_levels", "world", options.seed, done, options.quick)
        return
    for name in options.only:
        for repetition in range(2 if options.quick else options.repetitions):
            done = {name: measure_world(name, repetition)}
            keep_seed("drift_levels", "world", repetition, done, options.quick)


if __name__ == "__main__":
    main()
