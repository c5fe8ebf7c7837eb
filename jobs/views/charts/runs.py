"""Charts of runs: thresholds, calibration, volume, and where the time of one run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringfence.connector.records import Run, StoredCoverage
from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Bars, Figure, Line, Panel, named_places
from ringfence.jobs.views.charts.time_axis import TIME_LABEL, run_names, run_times


def thresholds(runs: Sequence[Run]) -> Figure:
    """NodeEx, EdgeEx and naive thresholds over the runs."""
    runs = thinned(runs)
    x, names = run_times(runs), run_names(runs)
    lines = (
        Line(x, [run.threshold_node for run in runs], "NodeEx", names=names),
        Line(x, [run.threshold_edge for run in runs], "EdgeEx", "second"),
        Line(x, [run.threshold_naive for run in runs], "naive", "muted", "dashes"),
    )
    return Figure(
        "thresholds",
        "Thresholds of each run",
        "Computed anew as the graph grows; the naive one never is. A class is in the set where its "
        "score is at or above the threshold. A gap is minus infinity: the full set.",
        (Panel("", TIME_LABEL, "threshold", lines, dates=True),),
    )


def calibration_size(runs: Sequence[Run]) -> Figure:
    """How many calibration nodes each run had, and what they are worth where that differs."""
    runs = thinned(runs)
    x, names = run_times(runs), run_names(runs)
    counts = [run.n_calibration for run in runs]
    effective = [run.effective_calibration for run in runs]
    lines = [Line(x, counts, "calibration nodes", names=names)]
    if any(size != count for size, count in zip(effective, counts, strict=True)):
        lines.append(Line(x, effective, "effective size", "second"))
    y_range = (0.0, 1.1 * max(counts, default=1))
    return Figure(
        "calibration",
        "Calibration nodes",
        "How many calibration nodes each run had, and what they are worth by weight.",
        (Panel("", TIME_LABEL, "nodes", tuple(lines), y_range=y_range, dates=True),),
    )


def arrivals(runs: Sequence[Run]) -> Figure:
    """How many nodes each run evaluated."""
    runs = thinned(runs)
    counts = [run.n_evaluated for run in runs]
    line = Line(run_times(runs), counts, "evaluated", names=run_names(runs))
    y_range = (0.0, 1.1 * max(counts, default=1))
    return Figure(
        "arrivals",
        "Nodes evaluated in each run",
        "A sudden change of the volume is a reason to look closer.",
        (Panel("", TIME_LABEL, "nodes", (line,), y_range=y_range, dates=True),),
    )


def set_size_shares(counted: StoredCoverage | None, evaluated: int) -> Figure:
    """How many sets of one run hold no class, one, several and all."""
    counts: dict[str, float] = {}
    if counted is not None:
        several = evaluated - counted.empty - counted.singletons - counted.full
        counts = {
            "no class": counted.empty,
            "one class": counted.singletons,
            "several": max(0, several),
            "all classes": counted.full,
        }
    ticks = named_places(list(counts))
    bars = Bars([place for place, _ in ticks], list(counts.values()), None, "nodes")
    return Figure(
        "set-sizes",
        "Sizes of the sets",
        "One class is an answer, several narrow it down, all classes exclude nothing.",
        (Panel("", "", "nodes", bars=(bars,), ticks=ticks),),
    )


def step_seconds(seconds: Mapping[str, float]) -> Figure:
    """Seconds per step of one run, in the order given."""
    ticks = named_places(list(seconds))
    bars = Bars([place for place, _ in ticks], list(seconds.values()), None, "seconds")
    return Figure(
        "timings",
        "Seconds per step",
        "Where the time of this run went.",
        (Panel("", "", "seconds", bars=(bars,), ticks=ticks),),
    )
