"""Charts as data: what is drawn, from rows that were counted already; who draws is decided later.

The dashboard hands a figure to the installed plotly, the report draws it as SVG. Long histories are
thinned first, so a page or a report stays small whatever the number of runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

Values = list[float | None]
MOST_POINTS = 300
DENSITY_BINS = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One series. `role` picks its colour: accent, second, muted or warn."""

    name: str
    y: Values
    role: Literal["accent", "second", "muted", "warn"] = "accent"
    shape: Literal["line", "points", "bars", "dashes", "step"] = "line"


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded area between two series."""

    name: str
    low: Values
    high: Values


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart, with words for who can't see it."""

    id: str
    title: str
    words: str
    x: list[Any]
    x_title: str
    y_title: str
    lines: list[Line]
    band: Band | None = None
    level: tuple[str, float] | None = None
    percent: bool = False
    log: bool = False
    bounds: tuple[float, float] | None = None
    sideways: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def thinned(rows: Sequence[dict[str, Any]], most: int = MOST_POINTS) -> list[dict[str, Any]]:
    """Return at most `most` rows, evenly spread, first and last among them.

    >>> [row["seq"] for row in thinned([{"seq": i} for i in range(10)], 4)]
    [0, 3, 6, 9]
    """
    if len(rows) <= most:
        return list(rows)
    chosen = np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))
    return [rows[i] for i in chosen]


def coverage_per_run(rows: Sequence[dict[str, Any]]) -> Figure:
    """Coverage of each run with its usual band, naive beside it."""
    rows = [row for row in thinned(rows) if row["known"]]
    promised = 1 - rows[-1]["alpha"] if rows else 0.9
    lowest = min((min(row["low"], row["coverage"], _naive(row)) for row in rows), default=0.5)
    return Figure(
        "coverage",
        "Coverage of each run",
        f"{len(rows)} runs with known classes; the shaded usual band is where coverage lies in 95 "
        "of 100 cases when all is well.",
        [row["seq"] for row in rows],
        "run",
        "covered",
        [
            Line("coverage", [row["coverage"] for row in rows]),
            Line("naive", [_naive(row) for row in rows], "muted", "dashes"),
        ],
        Band("usual band", [row["low"] for row in rows], [row["high"] for row in rows]),
        (f"promised {100 * promised:g} %", promised),
        percent=True,
        bounds=(max(0.0, lowest - 0.05), 1.005),
    )


def cumulative(rows: Sequence[dict[str, Any]]) -> Figure:
    """Coverage of all runs so far, with band and anytime bound."""
    rows = [row for row in thinned(rows) if row["known"]]
    promised = 1 - rows[-1]["alpha"] if rows else 0.9
    lowest = min((min(row["anytime_low"], row["coverage"]) for row in rows), default=0.5)
    return Figure(
        "cumulative",
        "Coverage of all runs so far",
        "Below the anytime bound coverage falls with probability at most 1 % when all is well, "
        "however often one looks.",
        [row["seq"] for row in rows],
        "up to run",
        "covered",
        [
            Line("coverage", [row["coverage"] for row in rows]),
            Line("anytime bound", [row["anytime_low"] for row in rows], "warn", "dashes"),
        ],
        Band("usual band", [row["low"] for row in rows], [row["high"] for row in rows]),
        (f"promised {100 * promised:g} %", promised),
        percent=True,
        bounds=(max(0.0, lowest - 0.05), 1.005),
    )


def set_sizes(rows: Sequence[dict[str, Any]]) -> Figure:
    """Average set size per run."""
    rows = thinned(rows)
    return Figure(
        "sizes",
        "Average set size of each run",
        "Smaller sets say more; a size that grows means that the model knows less.",
        [row["seq"] for row in rows],
        "run",
        "classes per set",
        [Line("average size", [row["mean_size"] for row in rows], "accent", "bars")],
    )


def thresholds(runs: Sequence[dict[str, Any]]) -> Figure:
    """NodeEx, EdgeEx and naive thresholds over the runs."""
    runs = thinned(runs)
    return Figure(
        "thresholds",
        "Thresholds of each run",
        "Computed anew as the graph grows; the naive one never is. A class is in the set where its "
        "score is at or above the threshold. A gap is minus infinity: the full set.",
        [row["seq"] for row in runs],
        "run",
        "threshold",
        [
            Line("NodeEx", [row["threshold_node"] for row in runs]),
            Line("EdgeEx", [row["threshold_edge"] for row in runs], "second"),
            Line("naive", [row["threshold_naive"] for row in runs], "muted", "dashes"),
        ],
    )


def calibration_size(runs: Sequence[dict[str, Any]]) -> Figure:
    """How many calibration nodes each run had, and what they are worth where that differs."""
    runs = thinned(runs)
    counts = [row["n_calibration"] for row in runs]
    worth = [row["effective_calibration"] for row in runs]
    lines = [Line("calibration nodes", counts, "accent", "step")]
    if any(one != other for one, other in zip(counts, worth, strict=True)):
        lines.append(Line("effective size", worth, "second"))
    return Figure(
        "calibration",
        "Calibration nodes",
        "How many calibration nodes each run had, and what they are worth by weight.",
        [row["seq"] for row in runs],
        "run",
        "nodes",
        lines,
        bounds=(0.0, 1.1 * max(counts, default=1)),
    )


def score_densities(watches: Sequence[dict[str, Any]]) -> Figure:
    """Where the calibration scores lay at the first, a middle and the last run."""
    known = [row for row in watches if row["calibration_scores"]]
    chosen = thinned(known, 3)
    every = [score for row in chosen for score in row["calibration_scores"]]
    edges = np.linspace(min(every, default=-1.0), max(every, default=0.0) + 1e-9, DENSITY_BINS + 1)
    roles: list[Literal["muted", "second", "accent"]] = ["muted", "second", "accent"]
    lines = [
        Line(f"run {row['seq']}", _density(row["calibration_scores"], edges), role, "step")
        for row, role in zip(chosen, roles[-len(chosen) :] if chosen else [], strict=False)
    ]
    middles = ((edges[1:] + edges[:-1]) / 2).round(4).tolist()
    return Figure(
        "scores",
        "Calibration scores",
        "Share of calibration nodes by the score of their true class; right is better.",
        middles,
        "score",
        "share",
        lines,
        percent=True,
    )


def classes(rows: Sequence[dict[str, Any]], id_: str, title: str) -> Figure:
    """Coverage of each class or group, worst first, with its reference band."""
    rows = [row for row in rows if row["known"]][:40]
    promised = 1 - rows[-1]["alpha"] if rows else 0.9
    return Figure(
        id_,
        title,
        "Worst first. The promise is for all nodes together, not for each class or group.",
        [row["name"] for row in rows],
        "",
        "covered",
        [Line("coverage", [row["coverage"] for row in rows], "accent", "points")],
        Band("usual band", [row["low"] for row in rows], [row["high"] for row in rows]),
        (f"promised {100 * promised:g} %", promised),
        percent=True,
        sideways=True,
    )


def stakes(watches: Sequence[dict[str, Any]], alarm_at: float) -> Figure:
    """The martingales' stakes as powers of ten, with the alarm level."""
    from ringfence.models.watch import Watch

    rows = [row for row in thinned(watches) if row["watch"]]
    states = [Watch.from_dict(row["watch"]["state"]) for row in rows]
    ten = float(np.log(10))
    return Figure(
        "stakes",
        "Stakes of the two martingales",
        "Each starts at 1 and bets that nodes of newly known class differ from those known "
        "before. Above the line exchangeability is broken.",
        [row["seq"] for row in rows],
        "run",
        "stake, power of ten",
        [
            Line("jumper", [state.jumper.log_capital / ten for state in states]),
            Line("mixture", [state.mixture.log_capital / ten for state in states], "second"),
        ],
        level=(f"alarm at {alarm_at:g}", float(np.log10(alarm_at))),
    )


def distances(watches: Sequence[dict[str, Any]]) -> Figure:
    """Distance (EMD) of each run's calibration scores from the first run's of its model."""
    rows = thinned(score_distances(watches))
    return Figure(
        "distance",
        "Distance of the calibration scores from the first run",
        "Earth mover's distance: by how much scores have moved on average, in units of the score.",
        [row["seq"] for row in rows],
        "run",
        "distance",
        [Line("distance", [row["distance"] for row in rows])],
    )


def score_distances(watches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return seq and distance per run: the mean difference of quantiles, which is the EMD.

    >>> score_distances([{"seq": 1, "model": "m", "calibration_scores": [0.0, 1.0]},
    ...                  {"seq": 2, "model": "m", "calibration_scores": [0.5, 1.5]}])[1]
    {'seq': 2, 'distance': 0.5}
    """
    first: dict[str, Any] = {}
    found = []
    for row in watches:
        if row["calibration_scores"]:
            now = np.array(row["calibration_scores"])
            start = first.setdefault(row["model"], now)
            found.append({"seq": row["seq"], "distance": float(np.abs(now - start).mean())})
    return found


def arrivals(runs: Sequence[dict[str, Any]]) -> Figure:
    """How many nodes each run evaluated."""
    runs = thinned(runs)
    return Figure(
        "arrivals",
        "Nodes evaluated in each run",
        "A sudden change of the volume is a reason to look.",
        [row["seq"] for row in runs],
        "run",
        "nodes",
        [Line("evaluated", [row["n_evaluated"] for row in runs], "accent", "bars")],
    )


def degrees(rows: Sequence[dict[str, Any]]) -> Figure:
    """Mean degree of the evaluated nodes per run."""
    rows = thinned(rows)
    return Figure(
        "degree",
        "Mean degree of evaluated nodes",
        "New nodes with other numbers of neighbours than before are not exchangeable with them.",
        [row["seq"] for row in rows],
        "run",
        "neighbours",
        [Line("mean degree", [row["mean_degree"] for row in rows])],
    )


def _naive(row: dict[str, Any]) -> float:
    return float(row["covered_naive"] / row["known"])


def _density(quantiles: list[float], edges: Any) -> Values:
    """Shares per bin, from quantiles: linear in between."""
    grid = np.linspace(0, 1, len(quantiles))
    below = np.interp(edges, quantiles, grid, left=0.0, right=1.0)
    return [round(float(share), 5) for share in np.diff(below)]
