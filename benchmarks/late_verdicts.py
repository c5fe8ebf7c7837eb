"""Verdicts over lives with late classes as they were before, and now (`benchmarks.late_classes`).

Before, a run was *kept* unless its own simulated law, however wide that was, or the bound for any
look found so few covered in less than 5 of 100 cases; a level that swings had verdicts like any
other, runs settled by one delay for all classes, and runs of which only early classes were known
were judged by them. Now is what the product says.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from benchmarks.verdict_lives import ALPHA, Played, World, play
from benchmarks.verdicts import audit
from ringfence.connector.records import CoverageRow
from ringfence.jobs.auditing.coverage_law import living_coverage
from ringfence.jobs.auditing.summary import summarise
from ringfence.models.guarantee.anytime import log_evidence
from ringfence.models.guarantee.law import coverage_band
from ringfence.models.guarantee.verdict import BROKEN_P, ROUNDING, WATCH_P

SWINGING_NODES = 50
"""In larger runs the bound for any look called most of the low ones broken, before as well."""

FIRST_RUNS = 120
SHOWN = (30, 60, 90, 120)
"""Runs after which somebody looks at a life with one class known first."""


def measure_swinging(before: bool, lives: int, runs: int) -> dict[str, Any]:
    """Return verdicts where nothing changes and classes come 60 runs late."""
    mode: Literal["then", "today"] = "then" if before else "today"
    ever, low, kept = 0, 0, 0
    for seed in range(lives):
        played = play(World(mode, 60, SWINGING_NODES, runs), seed)
        rows, _ = audit(played, runs, old=before)
        ever += any(_is_broken(row, before) for row in rows if row.slice == "total" and row.known)
        words = _verdicts_then(played, runs) if before else _verdicts_now(rows)
        of_low = [word for seq, coverage, word in words if coverage < _exact_low(played, seq)]
        low, kept = low + len(of_low), kept + of_low.count("kept")
    name = f"verdicts, nothing changes, 60 late, {SWINGING_NODES} a run"
    row = {"world": name, "rule": "before" if before else "now"}
    share = kept / low if low else 0.0
    return row | {
        "total ever broken": ever / lives,
        "runs below": low,
        "of these kept": share,
        "verdict": "red" if ever or share else "green",
    }


def measure_first_class(
    first: Literal["hard", "easy"], late: int, before: bool, lives: int
) -> dict[str, Any]:
    """Return coverage by quarter and verdicts where a class is known before the others."""
    world = World(
        "then" if before else "today", late, 200, FIRST_RUNS, early=first == "hard",
        easy_first=first == "easy", by_age=before,
    )  # fmt: skip
    covered, ever, kept = [], 0, 0
    for seed in range(lives):
        played = play(world, seed)
        covered.append([of_run.mean() for of_run in played.covered])
        totals = [_last_total(audit(played, now, old=before)[0]) for now in SHOWN]
        ever += any(_is_broken(row, before) for row in totals if row is not None)
        kept += totals[0] is not None and totals[0].verdict == "kept"
    quarters = [float(part.mean()) for part in np.array_split(np.mean(covered, axis=0), 4)]
    far = max(abs(quarter - 0.9) for quarter in quarters) > 0.03
    name = "hard 10 % first" if first == "hard" else "easy classes first, hard 10 %"
    return {
        "world": f"verdicts, {name}, {late} late",
        "rule": "before" if before else "now",
        **{f"quarter {i}": quarter for i, quarter in enumerate(quarters, 1)},
        "total ever broken": ever / lives,
        "kept at run 30": kept / lives,
        "verdict": "red" if ever or far else "green",
    }


def _exact_low(played: Played, seq: int) -> float:
    """The lower end of the exact band of a fixed level with the same n and m."""
    n = played.schedule[seq - 1].n_calibration
    return coverage_band(n, SWINGING_NODES, ALPHA)[0] - ROUNDING


def _is_broken(row: CoverageRow, before: bool) -> bool:
    """Whether a total is broken; before, wherever the anytime bound was crossed."""
    return row.anytime_p < BROKEN_P if before else row.verdict == "broken"


def _last_total(rows: list[CoverageRow]) -> CoverageRow | None:
    totals = [row for row in rows if row.slice == "total" and row.known]
    return totals[-1] if totals else None


def _verdicts_now(rows: list[CoverageRow]) -> list[tuple[int, float, str]]:
    """Number, coverage and verdict of the runs."""
    of_runs = [row for row in rows if row.slice == "run" and row.known]
    return [(row.seq, row.coverage or 0.0, row.verdict) for row in of_runs]


def _verdicts_then(played: Played, now: int) -> list[tuple[int, float, str]]:
    """The same by the rule of before: no p-value, of its own law or of any look, below 5 %."""
    tallies = played.tallies(now)
    law = living_coverage(tallies, tallies, {"m": played.schedule[:now]})
    words: list[tuple[int, float, str]] = []
    for tally in tallies:
        if law is None or not tally.counts["known"]:
            continue
        known, covered = tally.counts["known"], tally.counts["covered"]
        usual = law.usual(summarise([tally]), covered)
        evidence = log_evidence(tally.n_calibration, known, covered, ALPHA)
        p = min(1.0 if usual is None else usual.p_value, math.exp(-max(0.0, evidence)))
        words.append((tally.seq, covered / known, "kept" if p >= WATCH_P else "watch"))
    return words
