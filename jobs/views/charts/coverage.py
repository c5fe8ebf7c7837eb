"""Charts of coverage rows: per run, cumulative, by class or group; set sizes and degrees."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.connector.records import CoverageRow
from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Band, Bars, Figure, Level, Line, Panel, named_places

MAX_NAMES = 40
Rows = Sequence[CoverageRow]


def coverage_per_run(rows: Rows) -> Figure:
    """Coverage of each run with its usual band."""
    rows = [row for row in thinned(rows) if row.known]
    x = [row.seq for row in rows]
    lowest = min((min(row.low, _coverage(row)) for row in rows), default=0.5)
    panel = Panel(
        "",
        "run",
        "covered",
        (Line(x, [row.coverage for row in rows], "coverage"),),
        bands=(_usual_band(rows),),
        levels=(_promised(rows),),
        y_range=(max(0.0, lowest - 0.05), 1.005),
        percent=True,
    )
    return Figure(
        "coverage",
        "Coverage of each run",
        f"{len(rows)} runs with known classes; the shaded usual band is where coverage lies in 95 "
        "of 100 cases when all is well.",
        (panel,),
    )


def cumulative(rows: Rows) -> Figure:
    """Coverage of all runs so far, with band and anytime bound."""
    rows = [row for row in thinned(rows) if row.known]
    x = [row.seq for row in rows]
    lowest = min((min(row.anytime_low, _coverage(row)) for row in rows), default=0.5)
    panel = Panel(
        "",
        "up to run",
        "covered",
        (
            Line(x, [row.coverage for row in rows], "coverage"),
            Line(x, [row.anytime_low for row in rows], "anytime bound", "warn", "dashes"),
        ),
        bands=(_usual_band(rows),),
        levels=(_promised(rows),),
        y_range=(max(0.0, lowest - 0.05), 1.005),
        percent=True,
    )
    return Figure(
        "cumulative",
        "Coverage of all runs so far",
        "Below the anytime bound coverage falls with probability at most 1 % when all is well, "
        "however often one looks.",
        (panel,),
    )


def set_sizes(rows: Rows) -> Figure:
    """Average set size per run."""
    rows = thinned(rows)
    bars = Bars([row.seq for row in rows], [row.mean_size for row in rows], None, "average size")
    return Figure(
        "sizes",
        "Average set size of each run",
        "Smaller sets say more; a size that grows means that the model knows less.",
        (Panel("", "run", "classes per set", bars=(bars,)),),
    )


def degrees(rows: Rows) -> Figure:
    """Mean degree of the evaluated nodes per run."""
    rows = thinned(rows)
    line = Line([row.seq for row in rows], [row.mean_degree for row in rows], "mean degree")
    return Figure(
        "degree",
        "Mean degree of evaluated nodes",
        "New nodes with other numbers of neighbours than before are not exchangeable with them.",
        (Panel("", "run", "neighbours", (line,)),),
    )


def coverage_by_name(rows: Rows, name: str, title: str) -> Figure:
    """Coverage of each class or group, worst first, with its reference band."""
    rows = [row for row in rows if row.known][:MAX_NAMES]
    ticks = named_places([row.name for row in rows])
    x = [place for place, _ in ticks]
    own = any(row.own_promise for row in rows)
    lines = [Line(x, [row.coverage for row in rows], "coverage", "accent", "points")]
    if own:
        promised = [1 - row.alpha if row.own_promise else None for row in rows]
        lines.append(Line(x, promised, "promised", "warn", "points"))
    panel = Panel(
        "",
        "",
        "covered",
        tuple(lines),
        bands=(Band(x, [row.low for row in rows], [row.high for row in rows], "usual band"),),
        levels=() if own else (_promised(rows),),
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
            if own
            else "The promise is for all nodes together, not for each class or group."
        ),
        (panel,),
    )


def _usual_band(rows: Rows) -> Band:
    x = [row.seq for row in rows]
    return Band(x, [row.low for row in rows], [row.high for row in rows], "usual band")


def _promised(rows: Rows) -> Level:
    promised = 1 - rows[-1].alpha if rows else 0.9
    return Level(promised, f"promised {100 * promised:g} %")


def _coverage(row: CoverageRow) -> float:
    return row.covered / row.known if row.coverage is None else row.coverage
