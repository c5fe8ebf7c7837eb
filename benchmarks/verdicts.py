"""Verdicts and alarms over lives of 400 runs whose classes come late: false alarms, and power.

python -m benchmarks.verdicts [--quick] [--json] [--lives N] [--delays D ...]
    [--part quiet|modes|power|alarms]

Every life is played with the functions that scoring uses and judged by those of `ringfence audit`
(`jobs.auditing.coverage`), classes D runs late for D in 1, 7, 14, 31, 60 and 90, in runs of 20 and
of 200 nodes. With an early class a hard tenth of the nodes is known at the next run; rows are then
taken at several days of the life, as an audit of that day would have them.

Where nothing changes: the share of runs called *watch* and *broken*, of windows of ten called
*broken*, of lives whose total was ever *broken*, whose alarms `decline` and `drift` (the monitor of
exchangeability) ever fired, and of rows that are *kept* outside the exact band of a fixed level.
Beside them stands what the docs claim: 5 and
1 % of looks, and 1 % of lives for each bound. Red lines are clearly above it. A level that counts
misses at the level used then (`then`, versions trained before) swings with late classes: there
*watch* is true, and rows say that no verdict can be given over many runs.

Modes: the same, with a look at the end, for what can be configured besides: sets
that grow, levels over a frozen set, bands, promises per class and group, weights, other alphas,
each with every delay and number of nodes, and with an early class.

Every world has `--lives` lives (2 where none are given). A row is all lives of one way to
calibrate, whatever their delays and sizes, or all of one delay and size, whatever the way: a share
of 1 % needs more lives than one world has.

Power: coverage at a fixed level falls to 85 % at run 50; the share of lives in which the total, a
window of ten runs and the alarm `decline` notice within 25 runs.

Alarms: how often each alarm ever fires in a life of 400 runs (`benchmarks.alarm_lives`).
"""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.measuring import RESULTS, keep
from benchmarks.mode_lives import ModeLife, ModeWorld, play_mode
from benchmarks.monitor_lives import ever_alarms
from benchmarks.verdict_lives import ALPHA, Floats, Mode, Played, World, play
from ringfence.connector.records import CoverageRow
from ringfence.connector.store.alarms import CoverageDecline
from ringfence.jobs.auditing.alarms.rules import WATCH_DELTA
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.jobs.auditing.coverage_law import living_coverage
from ringfence.jobs.auditing.summary import summarise
from ringfence.models.guarantee.anytime import ANYTIME_DELTA
from ringfence.models.guarantee.decline import (
    DECLINE_DELTA,
    decline,
    predict_frozen,
    predict_living,
)
from ringfence.models.guarantee.law import coverage_band
from ringfence.models.guarantee.verdict import BROKEN_P, WATCH_P

MODES: tuple[Mode, ...] = ("frozen", "window", "then", "today")
POWER_MODES: tuple[Mode, ...] = ("frozen", "window", "today")
DELAYS, NODES = (1, 7, 14, 31, 60, 90), (20, 200)
MAX_STABLE_DELAY = 24
MODE_RUNS = 60
"""Runs of a life of another mode, and its delay more."""

POWER_LIVES, ALARM_LIVES = 10, 4
"""Lives of power for each other life; lives at which alarms have all of theirs."""

DROP_AT, NOTICED_WITHIN = 50, 25
WINDOW_RUNS = 10
PARTS = ("all", "quiet", "modes", "power", "alarms")
"""What can be measured by itself; the rows of the other parts are kept."""

LOOKS = (8, 15, 30, 60, 100, 200, 400)
"""Runs after which a life with an early class is looked at."""

ALARM = -math.log(DECLINE_DELTA)
CLEARLY = 0.001
"""A share is red if it is that unlikely where the claim is true."""


CLAIMED = (
    f"claimed: watch {100 * WATCH_P:g} and broken {100 * BROKEN_P:g} of 100 looks at a run; total "
    f"ever broken, decline ever and drift ever {100 * ANYTIME_DELTA:g} of 100 lives each; kept "
    "outside 0"
)


def quiet_worlds(quick: bool, delays: Sequence[int] = DELAYS) -> list[World]:
    """Return the worlds in which nothing changes."""
    runs = 150 if quick else 400
    delays, nodes = ((7, 60), (200,)) if quick else (delays, NODES)
    plain = [World(mode, d, m, runs) for mode in MODES for d in delays for m in nodes]
    early = [World(mode, d, m, runs, early=True)
             for mode in (("frozen", "today") if not quick else ("today",))
             for d in ((30,) if quick else (14, 30)) for m in nodes]  # fmt: skip
    return plain + early


def swings(world: World | ModeWorld) -> bool:
    """Whether the level swings by itself, so that *watch* is true."""
    rule = world.mode if isinstance(world, World) else world.rule
    return rule == "then" and world.delay > MAX_STABLE_DELAY


def group_worlds(worlds: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the worlds of each row: of each way to calibrate, and of each delay and size.

    A level that swings is a way of its own, and in no row of a delay.
    """
    rows: dict[str, list[Any]] = {}
    for world in worlds:
        swinging = f", D > {MAX_STABLE_DELAY}" if swings(world) else ""
        early = ", early class" if world.early else ""
        if isinstance(world, World) or not early:  # of other modes too few lives for a row each
            rows.setdefault(f"{world.mode}{swinging}{early}", []).append(world)
    for world in worlds:
        if not swings(world):
            rows.setdefault(f"all others, {world.times}", []).append(world)
    return rows


def audit(played: Played, now: int, old: bool = False) -> tuple[list[CoverageRow], list[float]]:
    """Return the rows of an audit after `now` runs, and the capital of the bet on a decline.

    With `old` runs of which only early classes are known are judged like any others.
    """
    tallies, schedule = played.tallies(now), played.schedule[:now]
    early = played.unsettled(now) if played.world.divided and not old else ()
    unsettled = dict.fromkeys(early, 0)
    found: list[CoverageDecline] = []
    rows = coverage_rows(
        tallies, (), (), WINDOW_RUNS, {"m": schedule}, unsettled=unsettled, declines=found
    )
    return rows, [evidence.capital for evidence in found]


def count_false(world: World, seed: int) -> dict[str, int]:
    """Return how often each verdict was said in one life in which nothing changes."""
    played = play(world, seed)
    looks = [now for now in LOOKS if now <= world.runs] if world.early else [world.runs]
    counts = dict.fromkeys(
        ("runs", "watch", "broken", "windows", "window_broken", "ever", "decline", "outside"), 0
    )
    if world.divided or world.mode == "frozen":  # the monitor knows nothing of levels
        counts["drift"] = ever_alarms(played)
    for now in looks:
        rows, capitals = audit(played, now)
        judged = [row for row in rows if row.known]
        of_runs = [row for row in judged if row.slice == "run"]
        windows = [row for row in judged if row.slice == "window"]
        counts["runs"] += len(of_runs)
        counts["watch"] += sum(row.verdict in {"watch", "broken"} for row in of_runs)
        counts["broken"] += sum(row.verdict == "broken" for row in of_runs)
        counts["windows"] += len(windows)
        counts["window_broken"] += sum(row.verdict == "broken" for row in windows)
        totals = [row for row in judged if row.slice == "total"]
        counts["ever"] |= any(row.verdict == "broken" for row in totals)
        counts["decline"] |= any(math.log(capital) >= ALARM for capital in capitals)
        counts["outside"] += sum(_is_kept_outside(played, row) for row in of_runs)
    if not world.early:
        capitals = log_capitals(played, world.runs - world.delay)
        counts["decline"] |= bool((capitals >= ALARM).any())
    return counts


def _is_kept_outside(played: Played, row: CoverageRow) -> bool:
    """Whether a row is *kept* outside the exact band of a fixed level with its n and m."""
    n = played.schedule[row.seq - 1].n_calibration
    low, high = coverage_band(n, row.known, ALPHA)
    return row.verdict == "kept" and not low - 1e-9 <= (row.coverage or 0.0) <= high + 1e-9


def log_capitals(played: Played, now: int) -> Floats:
    """Logarithms of the capital after each of `now` runs, once the classes of all are known."""
    tallies = played.tallies(played.world.runs)[:now]
    law = living_coverage(tallies, tallies, {"m": played.schedule[:now]})
    runs = summarise(tallies)
    missed = runs.known - runs.covered
    predicted = (
        predict_frozen(runs.size, runs.known, missed, ALPHA)
        if law is None
        else predict_living(law.law, missed)
    )
    return decline(runs.known, missed, predicted, ALPHA).log_capital


def measure_quiet(world: World, lives: int) -> dict[str, Any]:
    """Return the shares over some lives, and whether they are clearly above what is claimed."""
    return judge_quiet(world.name, [count_false(world, s) for s in range(lives)], swings(world))


def judge_quiet(name: str, counts: Sequence[dict[str, int]], swinging: bool) -> dict[str, Any]:
    """Return the row of some lives."""
    lives = len(counts)
    of = {key: sum(life.get(key, 0) for life in counts) for key in counts[0]}
    watched = [life for life in counts if "drift" in life]
    drift = sum(life["drift"] for life in watched)
    row: dict[str, Any] = {
        "world": name,
        "lives": lives,
        "watch": of["watch"] / max(1, of["runs"]),
        "broken": of["broken"] / max(1, of["runs"]),
        "window broken": of["window_broken"] / max(1, of["windows"]),
        "total ever broken": of["ever"] / lives,
        "decline ever": of["decline"] / lives,
        "drift ever": drift / len(watched) if watched else None,
        "kept outside": of["outside"],
    }
    bad = of["outside"] > 0 or (
        (not swinging and is_clearly_above(_shares(counts, "watch"), WATCH_P + 0.01))
        or is_clearly_above(_shares(counts, "broken"), BROKEN_P + 0.005)
        or any(count > binom.ppf(1 - CLEARLY, many, claim) for count, many, claim in (
            (of["ever"], lives, ANYTIME_DELTA),
            (of["decline"], lives, DECLINE_DELTA),
            (drift, len(watched), WATCH_DELTA),
        ) if many)
    )  # fmt: skip
    return row | {"verdict": "red" if bad else "green"}


def _shares(counts: Sequence[dict[str, int]], name: str) -> list[float]:
    """Share of the runs of each life; of lives without a judged run none."""
    return [life[name] / life["runs"] for life in counts if life["runs"]]


def is_clearly_above(of_lives: Sequence[float], claim: float) -> bool:
    """Whether a mean over lives exceeds a claim by three standard errors.

    Runs of one life share calibration nodes, so they are no independent looks.
    """
    spread = float(np.std(of_lives, ddof=1)) / math.sqrt(len(of_lives)) if of_lives[1:] else 1.0
    return float(np.mean(of_lives)) - 3.0 * spread > claim


def mode_worlds(quick: bool, delays: Sequence[int] = DELAYS) -> list[ModeWorld]:
    """Return the ways to calibrate that `quiet_worlds` has not, at every delay and size."""
    worlds: list[ModeWorld] = []
    times = [(d, m, False) for d in delays for m in NODES] + [(30, m, True) for m in NODES]
    for delay, nodes, early in [(7, 200, False)] if quick else times:
        of = partial(ModeWorld, delay=delay, nodes=nodes, runs=MODE_RUNS + delay, early=early)
        worlds += [
            of("growing"), of("growing", "today"), of("frozen", "today"), of("frozen", "then"),
            of("window", bands=3), of("window", "today", bands=3),
            *(of("window", "today", alpha=alpha) for alpha in (0.01, 0.05, 0.2)),
            *(of(kind, rule, promise=promise)
              for promise in ("class", "group")
              for kind, rule in (("frozen", ""), ("window", ""), ("window", "today"))),
            of("frozen", weights="EdgeEx"), of("frozen", weights="shift"),
            *(of("window", rule, weights=weights)
              for weights in ("EdgeEx", "half-life", "shift") for rule in ("", "today")),
        ]  # fmt: skip
    return worlds[:4] if quick else worlds


def count_mode(world: ModeWorld, seed: int) -> dict[str, int]:
    """Return how often each verdict was said in one life, at its end."""
    life, counts = play_mode(world, seed), dict.fromkeys(
        ("runs", "watch", "broken", "windows", "window_broken", "ever", "parts", "parts_broken",
         "no_verdict", "decline"), 0
    )  # fmt: skip
    rows, capitals = audit_mode(life.until(world.runs), life.unsettled(world.runs))
    counts["decline"] += any(math.log(capital) >= ALARM for capital in capitals)
    _count_rows(counts, rows)
    return counts


def measure_mode(world: ModeWorld, lives: int) -> dict[str, Any]:
    """Return the same as `measure_quiet` for one of these."""
    return judge_modes(world.name, [count_mode(world, s) for s in range(lives)], swings(world))


def judge_modes(name: str, counts: Sequence[dict[str, int]], swinging: bool) -> dict[str, Any]:
    """Return the row of some lives, with their parts where they have promises."""
    lives = len(counts)
    of = {key: sum(life[key] for life in counts) for key in counts[0]}
    row: dict[str, Any] = {
        "world": name,
        "lives": lives,
        "watch": of["watch"] / max(1, of["runs"]),
        "broken": of["broken"] / max(1, of["runs"]),
        "window broken": of["window_broken"] / max(1, of["windows"]),
        "total ever broken": of["ever"] / lives,
        "decline ever": of["decline"] / lives,
        "part broken": of["parts_broken"] / max(1, of["parts"]),
        "no verdict": of["no_verdict"] / lives,
    }
    bad = any(
        count > binom.ppf(1 - CLEARLY, many, claim)
        for count, many, claim in (
            (of["ever"], lives, ANYTIME_DELTA),
            (of["decline"], lives, DECLINE_DELTA),
            (of["parts_broken"], of["parts"], BROKEN_P),
        )
    ) or any(
        is_clearly_above(_shares(counts, said), claim)
        for said, claim in (("watch", WATCH_P + 0.01), ("broken", BROKEN_P + 0.005))
        if not (swinging and said == "watch")
    )
    return row | {"verdict": "red" if bad else "green"}


def audit_mode(
    life: ModeLife, unsettled: frozenset[int] = frozenset()
) -> tuple[list[CoverageRow], list[float]]:
    """Return the rows of an audit of a life, and the capital of the bet on a decline."""
    found: list[CoverageDecline] = []
    named = ((), life.named) if life.world.promise == "group" else (life.named, ())
    rows = coverage_rows(
        life.tallies, *named, WINDOW_RUNS, {"m": life.whole}, life.of_parts, unsettled=unsettled,
        declines=found,
    )  # fmt: skip
    return rows, [evidence.capital for evidence in found]


def _count_rows(of: dict[str, int], rows: Sequence[CoverageRow]) -> None:
    """Count what rows of a life say."""
    of_runs = [row for row in rows if row.slice == "run" and row.known]
    windows = [row for row in rows if row.slice == "window" and row.known]
    totals = [row for row in rows if row.slice == "total" and row.known]
    parts = [row for row in rows if row.own_promise]
    of["runs"] += len(of_runs)
    of["watch"] += sum(row.verdict in {"watch", "broken"} for row in of_runs)
    of["broken"] += sum(row.verdict == "broken" for row in of_runs)
    of["windows"] += len(windows)
    of["window_broken"] += sum(row.verdict == "broken" for row in windows)
    of["ever"] += any(row.verdict == "broken" for row in totals)
    of["parts"] += len(parts)
    of["parts_broken"] += sum(row.verdict == "broken" for row in parts)
    of["no_verdict"] += totals[-1].verdict == "no verdict"


def measure_power(world: World, lives: int) -> dict[str, Any]:
    """Return the share of lives in which a drop to 85 % is noticed within 25 known runs."""
    last = DROP_AT + NOTICED_WITHIN
    dropped = replace(world, runs=last + world.delay, drop_at=DROP_AT)
    noticed = {"total": 0, "window": 0, "decline": 0}
    for seed in range(lives):
        played = play(dropped, seed)
        tallies = played.tallies(dropped.runs)[:last]
        rows = coverage_rows(tallies, (), (), WINDOW_RUNS, {"m": played.schedule[:last]})
        for slice_ in ("total", "window"):
            noticed[slice_] += any(
                row.verdict == "broken" for row in rows if row.slice == slice_ and row.seq > DROP_AT
            )
        noticed["decline"] += bool((log_capitals(played, last)[DROP_AT:] >= ALARM).any())
    return {"world": f"{world.name}, to 85 %"} | {
        f"{name} notices": many / lives for name, many in noticed.items()
    }


def play_rows(
    worlds: Sequence[Any],
    lives: int,
    count: Callable[[Any, int], dict[str, int]],
    judge: Callable[[str, Sequence[dict[str, int]], bool], dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Play every world and yield the rows of `group_worlds`."""
    counts = {world: [count(world, seed) for seed in range(lives)] for world in worlds}
    for name, grouped in group_worlds(worlds).items():
        of_row = [life for world in grouped for life in counts[world]]
        yield judge(name, of_row, any(swings(world) for world in grouped))


def measure(
    quick: bool, lives: int, part: str = "all", delays: Sequence[int] = DELAYS
) -> Iterator[dict[str, Any]]:
    """Yield the rows of each part, or those of one part alone."""
    if part in {"all", "quiet"}:
        for row in play_rows(quiet_worlds(quick, delays), lives, count_false, judge_quiet):
            yield {"part": "quiet"} | row
    if part in {"all", "modes"}:
        for row in play_rows(mode_worlds(quick, delays), lives, count_mode, judge_modes):
            yield {"part": "modes"} | row
    if part in {"all", "power"}:
        times = ((7, 200),) if quick else tuple((d, m) for d in delays for m in NODES)
        for world in (World(mode, d, m) for mode in POWER_MODES for d, m in times):
            many = POWER_LIVES * lives
            yield {"part": "power", "lives": many} | measure_power(world, many)
    if part in {"all", "alarms"}:
        from benchmarks.alarm_lives import measure_alarms

        for row in measure_alarms(quick, lives):
            yield {"part": "alarms"} | row


def print_row(row: dict[str, Any]) -> None:
    """Print a row; a red one is red where the terminal can show it."""
    cells = [
        f"{name} {100 * value:.1f} %" if isinstance(value, float)
        else str(value) if name in {"world", "alarm", "verdict"} else f"{name} {value}"
        for name, value in row.items()
        if name != "part"
    ]  # fmt: skip
    line = "  ".join(cells)
    red = row.get("verdict") == "red" and sys.stdout.isatty()
    print(f"\x1b[31m{line}\x1b[0m" if red else line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument(
        "--lives", type=int, default=2,
        help=f"per world; power {POWER_LIVES} times, alarms {100 / ALARM_LIVES:g} % of theirs each",
    )  # fmt: skip
    parser.add_argument("--delays", type=int, nargs="+", default=DELAYS, help="in runs")
    parser.add_argument("--part", choices=PARTS, default="all")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(CLAIMED)
    for row in measure(options.quick, options.lives, options.part, options.delays):
        rows.append(row)
        if not options.json:
            print_row(rows[-1])
            with redirect_stdout(io.StringIO()):  # a long measurement may be ended half-way
                _keep(rows, options)
    if options.json:
        print(json.dumps(rows, indent=1))


def _keep(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Write the rows so far, with those of the parts that are not measured now."""
    others = [] if options.quick or options.part == "all" else _kept_of_others(options.part)
    keep("verdicts", sorted(others + rows, key=_place), options.quick)


def _kept_of_others(part: str) -> list[dict[str, Any]]:
    """The rows of the other parts, as they were kept last."""
    path = RESULTS / "verdicts.json"
    before = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    return [row for row in before if row["part"] != part]


def _place(row: dict[str, Any]) -> int:
    return PARTS.index(row["part"])


if __name__ == "__main__":
    main()
