"""Coverage by class and by group."""

from __future__ import annotations

from ringfence.jobs.auditing.coverage import without_group
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence, read_tables
from ringfence.jobs.views import charts


def build(queries: Queries) -> Values:
    """Return classes and groups, worst first, and how many nodes have no group."""
    groups, totals = queries.named("group"), queries.totals()
    evaluated_by_group = {group.name: group.evaluated for group in groups}
    ungrouped = without_group(evaluated_by_group, totals[-1].evaluated if totals else 0)
    return {
        "title": PAGE.title,
        "lead": [
            "The promise is for all nodes together. A class or group below its band is a reason "
            "to look closer, not a broken promise; p-values here pay for looking at all of them.",
            *map(as_sentence, ungrouped),
        ],
        "figures": [
            charts.coverage_by_name(queries.named("class"), "classes", "Coverage by class"),
            charts.coverage_by_name(groups, "groups", "Coverage by group"),
        ],
        "tables": read_tables(queries, "classes", "groups"),
    }


PAGE = Page("classes", "Classes & groups", "/classes", "page.html", build)
