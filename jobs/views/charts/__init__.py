"""Charts as data: what is drawn, from rows that were counted already; a renderer draws it later."""

from ringfence.jobs.views.charts.coverage import (
    coverage_by_name,
    coverage_per_run,
    cumulative,
    degrees,
    set_sizes,
)
from ringfence.jobs.views.charts.drift import capital, distances, score_densities, score_distances
from ringfence.jobs.views.charts.runs import arrivals, calibration_size, step_seconds, thresholds
from ringfence.jobs.views.charts.trade_off import class_trade_off

__all__ = [
    "arrivals",
    "calibration_size",
    "capital",
    "class_trade_off",
    "coverage_by_name",
    "coverage_per_run",
    "cumulative",
    "degrees",
    "distances",
    "score_densities",
    "score_distances",
    "set_sizes",
    "step_seconds",
    "thresholds",
]
