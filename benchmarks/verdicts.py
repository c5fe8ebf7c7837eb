"""Verdicts and alarms over lives of 400 runs whose classes come late: false alarms, and power.

python -m benchmarks.verdicts [--quick] [--json] [--lives N] [--part quiet|modes|power|alarms]

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

Modes: the same, with a look half-way and one at the end, for what can be configured besides: sets
that grow, levels over a frozen set, bands, promises per class and group, weights, other alphas.

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
from collections.abc import Iterator, Sequence
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


def quiet_worlds(quick: bool) -> list[World]:
    """Return the worlds in which nothing changes."""
    runs = 150 if quick else 400
    delays, nodes = ((7, 60), (200,)) if quick else (DELAYS, NODES)
    plain = [World(mode, d, m, runs) for mode in MODES for d in delays for m in nodes]
    early = [World(mode, d, m, runs, early=True)
             for mode in (("frozen", "today") if not quick else ("today",))
             for d in ((30,) if quick else (14, 30)) for m in nodes]  # fmt: skip
    return plain + early


def audit(played: Played, now: int, old: bool = False) -> tuple[list[CoverageRow], list[float]]:
    """Return the rows of an audit after `now` runs, and the capital of the bet on a decline.

    With `old` runs of which only early classes are known are judged like any others.
    """
    tallies, schedule = played.tallies(now), played.schedule[:now]
    unsettled = played.unsettled(now) if played.world.divided and not old else ()
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
    counts = [count_false(world, seed) for seed in range(lives)]
    of = {name: sum(life[name] for life in counts) for name in counts[0]}
    row: dict[str, Any] = {
        "world": world.name,
        "watch": of["watch"] / max(1, of["runs"]),
        "broken": of["broken"] / max(1, of["runs"]),
        "window broken": of["window_broken"] / max(1, of["windows"]),
        "total ever broken": of["ever"] / lives,
        "decline ever": of["decline"] / lives,
        "drift ever": of["drift"] / lives if "drift" in of else None,
        "kept outside": of["outside"],
    }
    swings = world.mode == "then" and world.delay > 24
    bad = of["outside"] > 0 or (
        (not swings and is_clearly_above([life["watch"] / max(1, life["runs"]) for life in counts],
                                         WATCH_P + 0.01))
        or is_clearly_above([life["broken"] / max(1, life["runs"]) for life in counts],
                            BROKEN_P + 0.005)
        or any(count > binom.ppf(1 - CLEARLY, lives, claim) for count, claim in (
            (of["ever"], ANYTIME_DELTA),
            (of["decline"], DECLINE_DELTA),
            (of.get("drift", 0), WATCH_DELTA),
        ))
    )  # fmt: skip
    return row | {"verdict": "red" if bad else "green"}


def is_clearly_above(of_lives: Sequence[float], claim: float) -> bool:
    """Whether a mean over lives exceeds a claim by three standard errors.

    Runs of one life share calibration nodes, so they are no independent looks.
    """
    spread = float(np.std(of_lives, ddof=1)) / math.sqrt(len(of_lives)) if of_lives[1:] else 1.0
    return float(np.mean(of_lives)) - 3.0 * spread > claim


def mode_worlds(quick: bool) -> list[ModeWorld]:
    """Return the ways to calibrate that `quiet_worlds` has not."""
    worlds = []
    for delay in (7,) if quick else (7, 60):
        of = partial(ModeWorld, delay=delay, runs=100 + 2 * delay)
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


def measure_mode(world: ModeWorld, lives: int) -> dict[str, Any]:
    """Return the same as `measure_quiet` for one of these, with its parts where it has promises."""
    of = dict.fromkeys(("runs", "watch", "broken", "windows", "window_broken", "ever", "parts",
                        "parts_broken", "no_verdict"), 0)  # fmt: skip
    of_lives: list[dict[str, int]] = []
    ever_declined = 0
    for seed in range(lives):
        life, mine = play_mode(world, seed), dict.fromkeys(of, 0)
        for now in (world.runs // 2, world.runs):
            rows, capitals = audit_mode(life.until(now))
            ever_declined += any(math.log(capital) >= ALARM for capital in capitals)
        _count_rows(mine, rows)
        of_lives.append(mine)
        of = {name: many + mine[name] for name, many in of.items()}
    row: dict[str, Any] = {
        "world": world.name,
        "watch": of["watch"] / max(1, of["runs"]),
        "broken": of["broken"] / max(1, of["runs"]),
        "window broken": of["window_broken"] / max(1, of["windows"]),
        "total ever broken": of["ever"] / lives,
        "decline ever": ever_declined / (2 * lives),
        "part broken": of["parts_broken"] / max(1, of["parts"]),
        "no verdict": of["no_verdict"] / max(1, lives),
    }
    bad = any(
        count > binom.ppf(1 - CLEARLY, many, claim)
        for count, many, claim in (
            (of["ever"], lives, ANYTIME_DELTA),
            (ever_declined, 2 * lives, DECLINE_DELTA),
            (of["parts_broken"], of["parts"], BROKEN_P),
        )
    ) or any(
        is_clearly_above([life[name] / max(1, life["runs"]) for life in of_lives], claim)
        for name, claim in (("watch", WATCH_P + 0.01), ("broken", BROKEN_P + 0.005))
    )
    return row | {"verdict": "red" if bad else "green"}


def audit_mode(life: ModeLife) -> tuple[list[CoverageRow], list[float]]:
    """Return the rows of an audit of a life, and the capital of the bet on a decline."""
    found: list[CoverageDecline] = []
    named = ((), life.named) if life.world.promise == "group" else (life.named, ())
    rows = coverage_rows(
        life.tallies, *named, WINDOW_RUNS, {"m": life.whole}, life.of_parts, declines=found
    )
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


def measure(quick: bool, lives: int, part: str = "all") -> Iterator[dict[str, Any]]:
    """Yield a row for each world and alarm, or for those of one part alone."""
    if part in {"all", "quiet"}:
        for world in quiet_worlds(quick):
            yield {"part": "quiet", "lives": lives} | measure_quiet(world, lives)
    if part in {"all", "modes"}:
        for of_mode in mode_worlds(quick):
            yield {"part": "modes", "lives": lives} | measure_mode(of_mode, lives)
    if part in {"all", "power"}:
        delays, nodes = ((7,), (200,)) if quick else (DELAYS, NODES)
        for world in (World(mode, d, m) for mode in POWER_MODES for d in delays for m in nodes):
            yield {"part": "power", "lives": 2 * lives} | measure_power(world, 2 * lives)
    if part in {"all", "alarms"}:
        from benchmarks.alarm_lives import measure_alarms

        for row in measure_alarms(quick):
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
    parser.add_argument("--lives", type=int, help="per world; 20, with --quick 3")
    parser.add_argument("--part", choices=PARTS, default="all")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(CLAIMED)
    lives = options.lives or (3 if options.quick else 20)
    for row in measure(options.quick, lives, options.part):
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
