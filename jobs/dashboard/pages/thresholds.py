"""Thresholds over time, calibration size, score distributions."""

from __future__ import annotations

from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, read_tables
from ringfence.jobs.views import charts


def build(queries: Queries) -> Values:
    """Return thresholds and calibration of the last runs."""
    runs = queries.runs()
    return {
        "title": PAGE.title,
        "lead": [],
        "figures": [
            charts.thresholds(runs),
            charts.calibration_size(runs),
            charts.score_densities(queries.monitor_states()),
        ],
        "tables": read_tables(queries, "thresholds"),
    }


PAGE = Page("thresholds", "Thresholds", "/thresholds", "page.html", build)
