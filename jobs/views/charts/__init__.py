"""Charts as data: what is drawn, from rows that were counted already; a renderer draws it later."""

from ringfence.jobs.views.charts.change_marks import with_changes
from ringfence.jobs.views.charts.comparison import comparison_distances, degrees
from ringfence.jobs.views.charts.coverage import (
    coverage_by_name,
    coverage_per_run,
    cumulative,
    set_sizes,
)
from ringfence.jobs.views.charts.drift import capital, distances, score_densities
from ringfence.jobs.views.charts.runs import (
    arrivals,
    calibration_size,
    set_size_shares,
    step_seconds,
    thresholds,
)
from ringfence.jobs.views.charts.version import class_trade_off

__all__ = [
    "arrivals",
    "calibration_size",
    "capital",
    "class_trade_off",
    "comparison_distances",
    "coverage_by_name",
    "coverage_per_run",
    "cumulative",
    "degrees",
    "distances",
    "score_densities",
    "set_size_shares",
    "set_sizes",
    "step_seconds",
    "thresholds",
    "with_changes",
]
