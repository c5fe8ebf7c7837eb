"""Coverage per run, cumulative, and set sizes."""

from __future__ import annotations

from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.views import charts


def build(view: PageView) -> Values:
    """Return the coverage charts and their tables."""
    per_run = view.series.coverage("run")
    return {
        "title": PAGE.title,
        "lead": [
            "Each node is judged by the set that it got on arrival, once its class became known. "
            "The usual band is valid for one look at one run; the anytime bound for daily checks."
        ],
        "range": view.range(),
        "figures": view.marked(
            charts.coverage_per_run(per_run),
            charts.cumulative(view.series.coverage("total")),
            charts.set_sizes(per_run),
        ),
        "tables": view.tables("coverage-run", "coverage-total", "coverage-window"),
    }


PAGE = Page("coverage", "Coverage", "/coverage", "page.html", build)
