"""Coverage per run, cumulative, and set sizes."""

from __future__ import annotations

from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, read_tables
from ringfence.jobs.views import charts


def build(queries: Queries) -> Values:
    """Return the coverage charts and their tables."""
    per_run = queries.coverage("run")
    return {
        "title": PAGE.title,
        "lead": [
            "Each node is judged by the set that it got on arrival, once its class became known. "
            "The usual band is right for one look at one run; the anytime bound for who looks "
            "every day."
        ],
        "figures": [
            charts.coverage_per_run(per_run),
            charts.cumulative(queries.coverage("total")),
            charts.set_sizes(per_run),
        ],
        "tables": read_tables(queries, "coverage-run", "coverage-total", "coverage-window"),
    }


PAGE = Page("coverage", "Coverage", "/coverage", "page.html", build)
