"""Classes that come late, early or not at all: the level and the settled runs, before and now.

python -m benchmarks.late_classes [--quick] [--json] [--flights FOLDER]

1. Levels: classes D runs late where nothing changes and under gradual, sudden and seasonal change,
   with few and many nodes per run, with labels once a month, and with geometric delays after which
   70 % are ever known. `then` judges an answered run at the level that it used (the rule before),
   `capped` does so with the step .5 / (D + 1), `today` judges it at the level of the day.
2. Classes: an early class, easy classes first, a class that stops coming, a rare one a year late.
   `before` is the rule of settled runs until then with the level `then`, `now` the product's.
   `twice the delay that was seen` waits for a class that was never seen no longer than for others,
   `90 runs` as long as versions did that were trained before, `now` a year of daily runs.
3. The first five runs of a life whose classes are all known at once: whether the level moves.
4. Verdicts in lives where nothing changes, before and now: the total ever *broken*, and the share
   of runs below the exact band of a fixed level that are *kept*; the same with one class known
   first.
5. Nodes that choose the best of 50 keys, with a u that they can compute and with a seed key.
6. With --flights real flights of April to December, day by day, statuses 7 to 60 days late.

Red lines are those that a user would not accept: full sets where nothing changes, or a run's 5 %
quantile or a quarter's coverage more than 3 points from what was promised. Where a class is never
known within the life, coverage is that of the others: of such nodes nothing is promised. Classes
that are wrong at first answer and calibrate as they are known; coverage is that of the true ones.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.late_replay import (
    ALPHA,
    UNKNOWN_RUN,
    ClassWorld,
    Ints,
    LevelRule,
    LevelWorld,
    Life,
    play_classes,
    play_levels,
)
from benchmarks.late_verdicts import measure_first_class, measure_swinging
from benchmarks.measuring import RESULTS, keep
from ringfence.models.calibration.cohort import FORMER_WAIT_RUNS, MAX_WAIT_DAYS

RULES: tuple[LevelRule, ...] = ("then", "capped", "today")
DELAYS = (1, 7, 14, 31, 45, 60, 90)
YEAR, LONG_RUNS = 365, 320
FOUR_WEEKS = 28
MAX_DISTANCE = 0.03
"""A quarter's coverage further from 90 % is a red line."""

MIN_QUANTILE = 0.82
"""5 % quantile of the coverage of runs of 100 nodes; a level that stands still has .85."""


MAX_FULL_FLIGHTS = 0.1
"""Real flights change: some days need full sets, where nothing changes none does."""


def level_worlds(quick: bool) -> list[LevelWorld]:
    """Return the worlds of part 1."""
    runs = 300 if quick else 600
    delays = (7, 45) if quick else DELAYS
    worlds = [LevelWorld("nothing changes", d, runs=runs) for d in delays]
    for name, power in (
        ("gradual", lambda time: 1.0 + 0.6 * time),
        ("sudden", lambda time: 1.6 if time > 0.5 else 1.0),
        ("seasonal", lambda time: 1.0 + 0.4 * math.sin(2 * math.pi * time * runs / YEAR)),
    ):
        worlds += [LevelWorld(name, d, runs=runs, power=power) for d in delays]
    some = [d for d in delays if d in (7, 45, 90)]
    for nodes in (1, 5, 20, 200, 5_000):
        worlds += [LevelWorld(f"{nodes:,} nodes a run", d, nodes, runs) for d in some]
    worlds += [LevelWorld("a class of one node a run on average", d, 1, runs, by_chance=True)
               for d in some]  # fmt: skip
    worlds += [LevelWorld("monthly lumps", d, runs=runs, lump=d) for d in (30, 60)]
    worlds += [LevelWorld("geometric, 70 % known", d, runs=runs, known=0.7) for d in (10, 30)]
    return worlds


def _stops(classes: Ints, run: int) -> Ints:
    return np.where((classes == 3) & (run >= 60), UNKNOWN_RUN, 7)


def _never(classes: Ints, _run: int) -> Ints:
    return np.where(classes == 3, UNKNOWN_RUN, 7)


NEVER_COMES = ClassWorld(
    "10 % never come, others harder from run 30 on", (0.3, 0.3, 0.3, 0.1), (1, 1, 1, 1), _never,
    runs=240, uncounted=3, harder=1.3, harder_from=30,
)  # fmt: skip
"""Waiting for a class that was never seen costs what the level could have learnt meanwhile."""

AT_ONCE = ClassWorld(
    "first five runs, all known at the next, 60 % covered",
    (0.6, 0.4), (1, 2), lambda classes, _run: np.ones(len(classes), np.int64),
    runs=10, harder=2.5,
)  # fmt: skip


def class_worlds() -> list[ClassWorld]:
    """Return the worlds of part 2."""
    early, easy = (0.1, 0.3, 0.3, 0.3), (0.3, 0.3, 0.3, 0.1)
    return [
        *(
            ClassWorld(f"hard 10 % at once, others {d} late", early, (6, 1, 1, 1), _late(0, 1, d))
            for d in (14, 30)
        ),
        *(
            ClassWorld(f"easy at once, hard 10 % {d} late", easy, (1, 1, 1, 3), _late(3, d, 1))
            for d in (14, 30)
        ),
        ClassWorld("hard 10 % at once, others 150 late", early, (6, 1, 1, 1), _late(0, 1, 150),
                   runs=LONG_RUNS),
        ClassWorld("easy at once, hard 10 % 200 late", easy, (1, 1, 1, 3), _late(3, 200, 1),
                   runs=400),
        ClassWorld("hard 4.5 % 60 late", (0.5, 0.455, 0.045), (1, 1, 8), _late(2, 60, 1)),
        ClassWorld("rare 0.6 % a year late", (0.5, 0.494, 0.006), (1, 1, 8), _late(2, YEAR, 7)),
        ClassWorld("6 % a year late, others", (0.5, 0.44, 0.06), (1, 1, 3), _late(2, YEAR, 7),
                   runs=240, uncounted=2),
        ClassWorld("10 % stops coming at run 60, others", easy, (1, 1, 1, 3), _stops,
                   runs=240, uncounted=3, uncounted_from=60),
        NEVER_COMES,
        replace(NEVER_COMES, name=f"{NEVER_COMES.name}, 7 declared", declared=7),
        ClassWorld("all known at the next run", (0.6, 0.4), (1, 2), _late(0, 1, 1), runs=40),
        ClassWorld("monthly lumps", (0.6, 0.4), (1, 2), lambda c, t: 30 - t % 30 + 0 * c),
        ClassWorld("7 late, 70 % known", (0.6, 0.4), (1, 2), _late(0, 7, 7), known=0.7),
        ClassWorld("7 late, 2 % wrong for 30 runs more", (0.6, 0.4), (1, 2), _late(0, 7, 7),
                   runs=240, wrong=0.02),
        ClassWorld("hard 10 % at once, 5 nodes a run", early, (6, 1, 1, 1), _late(0, 1, 14),
                   runs=240, nodes=5),
    ]  # fmt: skip


def _worlds_of_long_waits() -> list[ClassWorld]:
    return [world for world in class_worlds() if world.runs >= LONG_RUNS]


def _late(class_: int, its_delay: int, others: int) -> Any:
    return lambda classes, _run: np.where(classes == class_, its_delay, others)


def measure_levels(world: LevelWorld, rule: LevelRule, seeds: int) -> dict[str, Any]:
    """Return what a rule reached over some lives; where nothing changes over their last half."""
    lives = [play_levels(world, rule, seed) for seed in range(seeds)]
    changes = world.name in {"gradual", "sudden", "seasonal"}
    first = world.delay if changes else world.runs // 2
    covered = np.array([life.covered[first:] for life in lives])
    levels = np.array([life.levels[first:] for life in lives])
    row = {
        "world": world.name, "delay": world.delay, "rule": rule,
        "covered": float(np.nanmean(covered)),
        "quantile": float(np.nanquantile(covered, 0.05)),
        "full": float((levels <= 0).mean()),
        "low": float(np.quantile(levels, 0.05)), "high": float(np.quantile(levels, 0.95)),
        "worst": _worst_stretch(lives, world.delay),
    }  # fmt: skip
    quiet = not changes and world.nodes == 100
    bad = row["full"] > 0.02 or (quiet and row["quantile"] < MIN_QUANTILE)
    return row | {"verdict": "red" if bad else "green"}


def _worst_stretch(lives: Sequence[Life], first: int) -> float:
    """The lowest coverage of four weeks of daily runs in any life, the first delay left out."""
    window = np.ones(FOUR_WEEKS) / FOUR_WEEKS
    covered = [np.nan_to_num(life.covered[first:], nan=1.0 - ALPHA) for life in lives]
    return float(min(np.convolve(of_life, window, "valid").min() for of_life in covered))


def measure_classes(world: ClassWorld, settled_now: bool, seeds: int) -> dict[str, Any]:
    """Return coverage by quarter of the life."""
    return _quarters(world, "now" if settled_now else "before", seeds, settled_now)


def measure_wait(world: ClassWorld, rule: str, wait: int, seeds: int) -> dict[str, Any]:
    """Return the same where a class that was never seen is waited for that many runs."""
    return _quarters(world, rule, seeds, settled_now=True, wait=wait)


def _quarters(
    world: ClassWorld, rule: str, seeds: int, settled_now: bool, wait: int = MAX_WAIT_DAYS
) -> dict[str, Any]:
    lives = [play_classes(world, seed, settled_now, wait) for seed in range(seeds)]
    covered = np.mean([life.covered for life in lives], axis=0)
    quarters = [float(part.mean()) for part in np.array_split(covered, 4)]
    distance = max(abs(quarter - (1.0 - ALPHA)) for quarter in quarters)
    row = {"world": world.name, "rule": rule}
    row |= {f"quarter {i}": quarter for i, quarter in enumerate(quarters, 1)}
    return row | {"verdict": "red" if distance > MAX_DISTANCE else "green"}


def measure_first_runs(settled_now: bool, seeds: int) -> dict[str, Any]:
    """Return the level before the fifth run, in runs of which every class is known at the next."""
    lives = [play_classes(AT_ONCE, seed, settled_now) for seed in range(seeds)]
    level = float(np.mean([life.levels[4] for life in lives]))
    row = {"world": AT_ONCE.name, "rule": "now" if settled_now else "before"}
    moved = min(abs(life.levels[4] - ALPHA) for life in lives)
    return row | {
        "level": level,
        "covered": float(np.mean([life.covered[:5] for life in lives])),
        "covered then": float(np.mean([life.covered[5:] for life in lives])),
        "verdict": "green" if moved > 0 else "red",
    }


def measure_keys(guessed: bool, worlds: int) -> dict[str, Any]:
    """Return the coverage of nodes that choose the best of 50 keys by a u that they compute."""
    from benchmarks.chosen_keys import CONCENTRATIONS, GUESSED_SEED, simulate

    done = simulate(
        GUESSED_SEED if guessed else secrets.randbits(128), 50,
        CONCENTRATIONS["59 %"], worlds=worlds, nodes=200,
    )  # fmt: skip
    return {
        "world": "the best of 50 keys by u",
        "rule": "before" if guessed else "now",
        "covered": done.coverage / 100,
        "others": done.others / 100,
        "verdict": "red" if abs(done.coverage / 100 - 1 + ALPHA) > MAX_DISTANCE else "green",
    }


def measure_flights(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Replay the rules on real flights whose statuses come late, one network."""
    from benchmarks.drift_levels import WINDOW, summarize
    from benchmarks.drift_replay import Mode
    from benchmarks.drift_typed import typed_flights, typed_sequence
    from benchmarks.judged_runs import judge_runs, replay_rule
    from benchmarks.level_rules import AdaptiveRule, RejudgedRule

    part = {"days": 70, "trained": 5_000} if quick else {}
    delays = (7, 31) if quick else (7, 31, 45, 60)
    graph, network = typed_flights(folder, 2, delays=delays, **part)
    for delay in delays:
        sequence, first = typed_sequence(graph, network, delay)
        judged = judge_runs(sequence, Mode("", WINDOW), ALPHA, first)
        for name, rule in (
            ("then", AdaptiveRule()),
            ("capped", AdaptiveRule(min(0.05, 0.5 / (delay + 1)))),
            ("today", RejudgedRule()),
        ):
            result = summarize(f"{delay} days late, {name}", replay_rule(judged, rule), FOUR_WEEKS)
            far = abs(result["covered"] - 1.0 + ALPHA) > MAX_DISTANCE
            bad = far or result["full"] > MAX_FULL_FLIGHTS
            yield {"world": "flights", "delay": delay, "rule": name,
                   "covered": result["covered"], "full": result["full"],
                   "worst": result["worst_any"], "verdict": "red" if bad else "green"}  # fmt: skip


def measure(quick: bool, flights: Path | None) -> list[dict[str, Any]]:
    """Return all rows; a bar on stderr says how far it is."""
    seeds, some = (2, 2) if quick else (8, 10)
    tasks: list[Any] = [
        lambda w=world, r=rule: measure_levels(w, r, seeds)
        for world in level_worlds(quick)
        for rule in RULES
    ]
    tasks += [
        lambda w=world, s=settled: measure_classes(w, s, some)
        for world in class_worlds()
        for settled in (False, True)
    ]
    tasks += [
        lambda w=w, r=rule, n=wait: measure_wait(w, r, n, some)
        for w, rule, wait in (
            (class_worlds()[1], "twice the delay that was seen", 0),
            (NEVER_COMES, "twice the delay that was seen", 0),
            *((w, "90 runs", FORMER_WAIT_RUNS) for w in (NEVER_COMES, *_worlds_of_long_waits())),
        )
    ]
    both = (True, False)
    tasks += [lambda b=before: measure_first_runs(not b, some) for before in both]
    tasks += [lambda b=before: measure_swinging(b, *((2, 250) if quick else (16, 400)))
              for before in both]  # fmt: skip
    tasks += [
        lambda w=which, d=late, b=before: measure_first_class(w, d, b, 2 if quick else 6)
        for which in ("hard", "easy")
        for late in ((30,) if quick else (14, 30))
        for before in both
    ]
    tasks += [lambda b=before: measure_keys(b, 10 if quick else 40) for before in both]
    rows = [_shown(task()) for task in _bar(tasks)]
    return rows + (list(measure_flights(flights, quick)) if flights else [])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Log a row at once where LATE_CLASSES_LOG names a file: a long measurement can be followed."""
    log = os.environ.get("LATE_CLASSES_LOG")
    if log:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    return row


def _bar(tasks: Sequence[Any]) -> Iterable[Any]:
    """Yield tasks, with a progress bar where somebody looks."""
    for done, task in enumerate(tasks):
        if sys.stderr.isatty():
            filled = 30 * done // len(tasks)
            print(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{len(tasks)}",
                  end="", file=sys.stderr)  # fmt: skip
        yield task
    if sys.stderr.isatty():
        print("\r" + " " * 50, end="\r", file=sys.stderr)


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Print the rows as a table; red lines are red where the terminal can show it."""
    for row in rows:
        cells = [
            f"{name} {100 * value:.1f}" if isinstance(value, float) and name not in {"low", "high"}
            else f"{name} {value:.3f}" if isinstance(value, float)
            else f"{value}" if name in {"world", "rule", "verdict"} else f"{name} {value}"
            for name, value in row.items()
        ]  # fmt: skip
        line = "  ".join(cells)
        red = row.get("verdict") == "red" and sys.stdout.isatty()
        print(f"\x1b[31m{line}\x1b[0m" if red else line)


def draw(quick: bool, rows: Sequence[dict[str, Any]]) -> None:
    """Draw a life of each rule with classes 60 runs late, early classes, and verdicts."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(16, 4))
    runs = 300 if quick else 600
    world = LevelWorld("nothing changes", 60, runs=runs)
    for rule, colour in zip(RULES, ("C3", "C1", "C0"), strict=True):
        panels[0].plot(play_levels(world, rule, 0).levels, color=colour, label=rule, linewidth=1)
    panels[0].axhline(0.0, color="black", linewidth=0.6)
    panels[0].set(title="nothing changes, classes 60 runs late", xlabel="run", ylabel="level")
    early = class_worlds()[1]
    for settled, colour in ((False, "C3"), (True, "C0")):
        lives = [play_classes(early, seed, settled).covered for seed in range(2 if quick else 10)]
        smooth = np.convolve(np.mean(lives, axis=0), np.ones(10) / 10, "valid")
        label = "settled runs now" if settled else "before"
        panels[1].plot(np.arange(len(smooth)) + 5, 100 * smooth, color=colour, label=label)
    panels[1].axhline(90, color="black", linewidth=0.6)
    panels[1].set(title=early.name, xlabel="run", ylabel="covered %, mean of ten runs")
    _draw_verdicts(panels[2], rows)
    for axes in panels:
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / ("late_classes.quick.png" if quick else "late_classes.png"), dpi=110)
    pyplot.close(figure)


def _draw_verdicts(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Draw what verdicts said in lives in which nothing changes, before and now."""
    judged = [row for row in rows if "total ever broken" in row]
    bars = [
        (f"{row['world'].removeprefix('verdicts, ')}: {name}", row["rule"], 100 * row[name])
        for row in judged
        for name in ("total ever broken", "of these kept")
        if name in row
    ]
    names = list(dict.fromkeys(name for name, _, _ in bars))
    for rule, colour, shift in (("before", "C3", 0.2), ("now", "C0", -0.2)):
        of_rule = [(names.index(name) + shift, width) for name, own, width in bars if own == rule]
        places, widths = zip(*of_rule, strict=True)
        axes.barh(places, widths, height=0.4, color=colour, label=rule)
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.set(
        title="verdicts where nothing changes", xlabel="% of lives, or of runs below the exact band"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--flights", type=Path)
    options = parser.parse_args()
    rows = measure(options.quick, options.flights)
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print_rows(rows)
        keep("late_classes", rows, options.quick)
        draw(options.quick, rows)


if __name__ == "__main__":
    main()
