"""Charts of coverage rows: per run, cumulative, by class or group; set sizes and degrees."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.connector.records import CoverageRow
from ringfence.connector.store.queries.records import RunCoverage
from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Band, Figure, Level, Line, Panel, named_places
from ringfence.jobs.views.charts.time_axis import TIME_LABEL, run_names, run_times

MAX_NAMES = 40
Rows = Sequence[CoverageRow]
RunRows = Sequence[RunCoverage]


def coverage_per_run(rows: RunRows) -> Figure:
    """Coverage of each run with its usual band."""
    rows = [row for row in thinned(rows) if row.known]
    x, names = run_times(rows), run_names(rows)
    lowest = min((min(row.low, _coverage(row)) for row in rows), default=0.5)
    panel = Panel(
        "",
        TIME_LABEL,
        "covered",
        (Line(x, [row.coverage for row in rows], "coverage", names=names),),
        bands=(_usual_band(rows),),
        levels=(_promised(rows),),
        y_range=(max(0.0, lowest - 0.05), 1.005),
        percent=True,
        dates=True,
    )
    return Figure(
        "coverage",
        "Coverage of each run",
        f"{len(rows)} runs with known classes; the shaded usual band is where coverage lies in 95 "
        "of 100 cases when all is well.",
        (panel,),
    )


def cumulative(rows: RunRows) -> Figure:
    """Coverage of all runs so far, with band and anytime bound.

    The bound is drawn where it decides: not at rows that say that no verdict can be given.
    """
    rows = [row for row in thinned(rows) if row.known]
    x, names = run_times(rows), run_names(rows)
    bounds = [None if row.verdict == "no verdict" else row.anytime_low for row in rows]
    shown = [bound for bound in bounds if bound is not None]
    lowest = min([*map(_coverage, rows), *shown], default=0.5)
    lines = [Line(x, [row.coverage for row in rows], "coverage", names=names)]
    if any(bound is not None for bound in bounds):
        lines.append(Line(x, bounds, "anytime bound", "warn", "dashes"))
    panel = Panel(
        "",
        TIME_LABEL,
        "covered",
        tuple(lines),
        bands=(_usual_band(rows),),
        levels=(_promised(rows),),
        y_range=(max(0.0, lowest - 0.05), 1.005),
        percent=True,
        dates=True,
    )
    return Figure("cumulative", "Coverage of all runs so far", _about_bound(bounds), (panel,))


def _about_bound(bounds: Sequence[float | None]) -> str:
    """What the anytime bound says, and where it says nothing."""
    if bounds and bounds[-1] is None:
        return (
            "No verdict over many runs can be given here, so no anytime bound is drawn; the row of "
            "each run says why."
        )
    drawn = (
        "Below the anytime bound coverage falls with probability at most 1 % when all is well, "
        "however often one looks (proved for frozen calibration, measured otherwise)."
    )
    return drawn + (" It is missing where rows say no verdict." if None in bounds else "")


def set_sizes(rows: RunRows) -> Figure:
    """Average set size per run, with that of naive sets where it is on record."""
    rows = thinned(rows)
    x, names = run_times(rows), run_names(rows)
    lines = [Line(x, [row.mean_size for row in rows], "average size", names=names)]
    naive = [row.mean_size_naive for row in rows]
    if any(size is not None for size in naive):
        lines.append(Line(x, naive, "naive sets", "muted", "dashes"))
    return Figure(
        "sizes",
        "Average set size of each run",
        "Smaller sets say more; a size that grows means that the model knows less.",
        (Panel("", TIME_LABEL, "classes per set", tuple(lines), dates=True),),
    )


def coverage_by_name(rows: Rows, name: str, title: str) -> Figure:
    """Coverage of each class or group, worst first, with its reference band."""
    rows = [row for row in rows if row.known][:MAX_NAMES]
    ticks = named_places([row.name for row in rows])
    x = [place for place, _ in ticks]
    has_own_promise = any(row.own_promise for row in rows)
    lines = [Line(x, [row.coverage for row in rows], "coverage", "accent", "points")]
    if has_own_promise:
        promised = [1 - row.alpha if row.own_promise else None for row in rows]
        lines.append(Line(x, promised, "promised", "warn", "points"))
    panel = Panel(
        "",
        "",
        "covered",
        tuple(lines),
        bands=(Band(x, [row.low for row in rows], [row.high for row in rows], "usual band"),),
        levels=() if has_own_promise else (_promised(rows),),
        ticks=ticks,
        percent=True,
        sideways=True,
    )
    return Figure(
        name,
        title,
        "Worst first. "
        + (
            "Each has a promise of its own; where coverage is below its band, look closer."
            if has_own_promise
            else "The promise is for all nodes together, not for each class or group."
        ),
        (panel,),
    )


def _usual_band(rows: RunRows) -> Band:
    x = run_times(rows)
    return Band(x, [row.low for row in rows], [row.high for row in rows], "usual band")


def _promised(rows: Rows) -> Level:
    promised = 1 - rows[-1].alpha if rows else 0.9
    return Level(promised, f"promised {100 * promised:g} %")


def _coverage(row: CoverageRow) -> float:
    return row.covered / row.known if row.coverage is None else row.coverage
