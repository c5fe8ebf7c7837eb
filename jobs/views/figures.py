"""The charts of the pages as plotly figures, for notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.views import charts
from ringfence.jobs.views.charts.model import Figure
from ringfence.jobs.views.renderers import plotly

FIGURES: dict[str, Callable[[ProjectQueries], Figure]] = {
    "coverage": lambda queries: charts.coverage_per_run(queries.coverage("run")),
    "cumulative": lambda queries: charts.cumulative(queries.coverage("total")),
    "sizes": lambda queries: charts.set_sizes(queries.coverage("run")),
    "classes": lambda queries: charts.coverage_by_name(
        queries.named("class"), "classes", "Coverage by class"
    ),
    "groups": lambda queries: charts.coverage_by_name(
        queries.named("group"), "groups", "Coverage by group"
    ),
    "thresholds": lambda queries: charts.thresholds(queries.runs()),
    "arrivals": lambda queries: charts.arrivals(queries.runs()),
}


def draw_figure(queries: ProjectQueries, name: str) -> Any:
    """Return a chart as a plotly figure."""
    if name not in FIGURES:
        raise ConfigError(found=f"the figure {name!r}", needed=f"one of: {', '.join(FIGURES)}")
    if not plotly.available():
        raise ConfigError(
            found="plotly is not installed", needed="plotly", next_step="pip install plotly"
        )
    return plotly.as_plotly(FIGURES[name](queries))
