"""Verdicts over lives with late classes as they were before, and now (`benchmarks.late_classes`).

Before, a run was *kept* inside the band of its own simulated law, however wide that was, a level
that swings had verdicts like any other, runs settled by one delay for all classes, and runs of
which only early classes were known were judged by them. Now is what the product says.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from benchmarks.verdict_lives import Played, World, play
from benchmarks.verdicts import audit
from ringfence.connector.records import CoverageRow
from ringfence.jobs.auditing.coverage_law import living_coverage
from ringfence.jobs.auditing.summary import summarise
from ringfence.models.guarantee.verdict import BROKEN_P

LOW = 0.8
"""Coverage of a run which no user would call kept where 90 % are promised."""

FIRST_RUNS = 120
SHOWN = (30, 60, 90, 120)
"""Runs after which somebody looks at a life with one class known first."""


def measure_swinging(before: bool, lives: int, runs: int) -> dict[str, Any]:
    """Return verdicts where nothing changes and classes come 60 runs late."""
    mode: Literal["then", "today"] = "then" if before else "today"
    ever, low, kept = 0, 0, 0
    for seed in range(lives):
        played = play(World(mode, 60, 200, runs), seed)
        rows, _ = audit(played, runs, old=before)
        ever += any(_is_broken(row, before) for row in rows if row.slice == "total" and row.known)
        words = _verdicts_then(played, runs) if before else _verdicts_now(rows)
        of_low = [word for coverage, word in words if coverage <= LOW]
        low, kept = low + len(of_low), kept + of_low.count("kept")
    row = {"world": "verdicts, nothing changes, 60 late", "rule": "before" if before else "now"}
    share = kept / low if low else 0.0
    return row | {
        "total ever broken": ever / lives,
        "runs of 80 % or less": low,
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


def _is_broken(row: CoverageRow, before: bool) -> bool:
    """Whether a total is broken; before, wherever the anytime bound was crossed."""
    return row.anytime_p < BROKEN_P if before else row.verdict == "broken"


def _last_total(rows: list[CoverageRow]) -> CoverageRow | None:
    totals = [row for row in rows if row.slice == "total" and row.known]
    return totals[-1] if totals else None


def _verdicts_now(rows: list[CoverageRow]) -> list[tuple[float, str]]:
    """Coverage and verdict of the runs."""
    return [(row.coverage or 0.0, row.verdict) for row in rows if row.slice == "run" and row.known]


def _verdicts_then(played: Played, now: int) -> list[tuple[float, str]]:
    """The same by the band of the mode's own law alone."""
    tallies = played.tallies(now)
    law = living_coverage(tallies, tallies, {"m": played.schedule[:now]})
    words = []
    for tally in tallies:
        if law is None or not tally.counts["known"]:
            continue
        coverage = tally.counts["covered"] / tally.counts["known"]
        usual = law.usual(summarise([tally]), tally.counts["covered"])
        inside = usual is not None and usual.low <= coverage <= usual.high
        words.append((coverage, "kept" if inside else "watch"))
    return words
