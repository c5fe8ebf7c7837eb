"""Charts of the exchangeability monitor and of the calibration scores after each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringfence.connector.store.queries.records import MonitorState
from ringfence.jobs.lifecycle.score_drift import score_distances
from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Figure, Level, Line, Panel
from ringfence.jobs.views.charts.time_axis import TIME_LABEL, run_names, run_times

DENSITY_BINS = 40
DENSITY_ROLES = ("muted", "second", "accent")


def capital(states: Sequence[MonitorState], alarm_at: float) -> Figure:
    """The martingales' capital as powers of ten, with the alarm level."""
    from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor

    states = [state for state in thinned(states) if state.watch]
    monitors = [
        ExchangeabilityMonitor.from_dict(state.watch["state"]) for state in states if state.watch
    ]
    x, names = run_times(states), run_names(states)
    ten = float(np.log(10))
    lines = (
        Line(x, [monitor.jumper.log_capital / ten for monitor in monitors], "jumper", names=names),
        Line(x, [monitor.mixture.log_capital / ten for monitor in monitors], "mixture", "second"),
    )
    level = Level(float(np.log10(alarm_at)), f"alarm at {alarm_at:g}")
    return Figure(
        "capital",
        "Capital of the two martingales",
        "Each starts at 1 and bets that nodes of newly known class differ from those known "
        "before. Above the line exchangeability is broken.",
        (Panel("", TIME_LABEL, "capital, power of ten", lines, levels=(level,), dates=True),),
    )


def distances(states: Sequence[MonitorState]) -> Figure:
    """Distance (EMD) of each run's calibration scores from the first run's of its model."""
    rows = thinned(score_distances(states))
    distances = [row.distance for row in rows]
    line = Line(run_times(rows), distances, "distance", names=run_names(rows))
    return Figure(
        "distance",
        "Distance of the calibration scores from the first run",
        "Earth mover's distance: by how much scores have moved on average, in units of the score.",
        (Panel("", TIME_LABEL, "distance", (line,), dates=True),),
    )


def score_densities(states: Sequence[MonitorState]) -> Figure:
    """Where the calibration scores lay at the first, a middle and the last run."""
    chosen = [
        (state.seq, state.calibration_scores)
        for state in thinned([state for state in states if state.calibration_scores], 3)
        if state.calibration_scores
    ]
    every = [score for _, scores in chosen for score in scores]
    edges = np.linspace(min(every, default=-1.0), max(every, default=0.0) + 1e-9, DENSITY_BINS + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).round(4).tolist()
    roles = DENSITY_ROLES[-len(chosen) :]
    lines = tuple(
        Line(middles, _density(scores, edges), f"run {seq}", role, "step")
        for (seq, scores), role in zip(chosen, roles, strict=False)
    )
    return Figure(
        "scores",
        "Calibration scores",
        "Share of calibration nodes by the score of their true class; right is better.",
        (Panel("", "score", "share", lines, percent=True),),
    )


def _density(quantiles: Sequence[float], edges: Any) -> list[float | None]:
    """Shares per bin, from quantiles: linear in between."""
    grid = np.linspace(0, 1, len(quantiles))
    below = np.interp(edges, quantiles, grid, left=0.0, right=1.0)
    return [round(float(share), 5) for share in np.diff(below)]
