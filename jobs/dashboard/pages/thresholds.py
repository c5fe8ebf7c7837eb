"""Thresholds over time, calibration size, score distributions."""

from __future__ import annotations

from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.views import charts


def build(view: PageView) -> Values:
    """Return thresholds and calibration of the runs in the range."""
    runs = view.series.runs()
    return {
        "title": PAGE.title,
        "lead": [],
        "range": view.range(),
        "figures": view.marked(
            charts.thresholds(runs),
            charts.calibration_size(runs),
            charts.score_densities(view.series.monitor_states()),
        ),
        "tables": view.tables("thresholds"),
    }


PAGE = Page("thresholds", "Thresholds", "/thresholds", "page.html", build)
