"""Charts that compare each run's nodes with the calibration nodes on the same graph, unlabelled.

Both sides are of the same moment: degrees grow with the graph, so that new nodes are not compared
with what calibration nodes looked like when the model was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringfence.connector.records import Run
from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Figure, Line, Panel
from ringfence.jobs.views.charts.time_axis import TIME_LABEL, run_names, run_times

COLOURS = ("accent", "second", "warn", "muted")


MAX_LINES = 6  # of the quantities whose distance was largest


def compared_quantities(run: Run) -> dict[str, dict[str, Any]]:
    """Return what a run compared, by the name of the quantity; empty where nothing was."""
    return {quantity["name"]: quantity for quantity in (run.shift or {}).get("compared", ())}


def degrees(runs: Sequence[Run]) -> Figure:
    """Median degree of the evaluated nodes and of the calibration nodes, of each run."""
    runs = [run for run in thinned(runs) if "degree" in compared_quantities(run)]
    x, names = run_times(runs), run_names(runs)
    compared = [compared_quantities(run)["degree"] for run in runs]
    lines = (
        Line(x, [quantity["due"] for quantity in compared], "nodes of the run", names=names),
        Line(
            x,
            [quantity["calibration"] for quantity in compared],
            "calibration nodes",
            "muted",
            "dashes",
        ),
    )
    return Figure(
        "degree",
        "Median degree, beside that of the calibration nodes",
        "Both on the graph as it was at the run, within the bands of degree that the rule compares "
        "by. If the lines diverge, new nodes are connected differently from those that the "
        "promise was measured on.",
        (Panel("", TIME_LABEL, "neighbours", lines, dates=True),),
    )


def comparison_distances(runs: Sequence[Run]) -> Figure:
    """How far each run's nodes lie from its calibration nodes, in every quantity compared."""
    runs = [run for run in thinned(runs) if compared_quantities(run)]
    x, names = run_times(runs), run_names(runs)
    largest: dict[str, float] = {}
    for run in runs:
        for name, quantity in compared_quantities(run).items():
            largest[name] = max(largest.get(name, 0.0), quantity["distance"])
    most = sorted(largest, key=lambda name: -largest[name])[:MAX_LINES]
    quantities = [name for name in largest if name in most]
    lines = tuple(
        Line(
            x,
            [compared_quantities(run).get(name, {}).get("distance") for run in runs],
            name,
            COLOURS[place % len(COLOURS)],
            names=names,
        )
        for place, name in enumerate(quantities)
    )
    return Figure(
        "comparison-distance",
        "Distance of each run's nodes from its calibration nodes",
        "The largest gap between the two distributions (Kolmogorov and Smirnov), from 0 to 1, "
        "before any class is known; of many columns those farthest apart. Small runs lie farther "
        "apart by chance: the table has the p-values.",
        (Panel("", TIME_LABEL, "distance", lines, y_range=(0.0, 1.0), dates=True),),
    )
