"""Charts of runs: thresholds, calibration, volume, and where the time of one run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringfence.connector.records import Run
from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Bars, Figure, Line, Panel, named_places


def thresholds(runs: Sequence[Run]) -> Figure:
    """NodeEx, EdgeEx and naive thresholds over the runs."""
    runs = thinned(runs)
    x = [run.seq for run in runs]
    lines = (
        Line(x, [run.threshold_node for run in runs], "NodeEx"),
        Line(x, [run.threshold_edge for run in runs], "EdgeEx", "second"),
        Line(x, [run.threshold_naive for run in runs], "naive", "muted", "dashes"),
    )
    return Figure(
        "thresholds",
        "Thresholds of each run",
        "Computed anew as the graph grows; the naive one never is. A class is in the set where its "
        "score is at or above the threshold. A gap is minus infinity: the full set.",
        (Panel("", "run", "threshold", lines),),
    )


def calibration_size(runs: Sequence[Run]) -> Figure:
    """How many calibration nodes each run had, and what they are worth where that differs."""
    runs = thinned(runs)
    x = [run.seq for run in runs]
    counts = [run.n_calibration for run in runs]
    effective = [run.effective_calibration for run in runs]
    lines = [Line(x, counts, "calibration nodes", "accent", "step")]
    if any(size != count for size, count in zip(effective, counts, strict=True)):
        lines.append(Line(x, effective, "effective size", "second"))
    y_range = (0.0, 1.1 * max(counts, default=1))
    return Figure(
        "calibration",
        "Calibration nodes",
        "How many calibration nodes each run had, and what they are worth by weight.",
        (Panel("", "run", "nodes", tuple(lines), y_range=y_range),),
    )


def arrivals(runs: Sequence[Run]) -> Figure:
    """How many nodes each run evaluated."""
    runs = thinned(runs)
    bars = Bars([run.seq for run in runs], [run.n_evaluated for run in runs], None, "evaluated")
    return Figure(
        "arrivals",
        "Nodes evaluated in each run",
        "A sudden change of the volume is a reason to look closer.",
        (Panel("", "run", "nodes", bars=(bars,)),),
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
