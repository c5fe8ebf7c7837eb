"""Coverage by class and by group."""

from __future__ import annotations

from ringfence.jobs.auditing.coverage import without_group
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.views import charts
from ringfence.jobs.views.promise import promise_of_run


def build(view: PageView) -> Values:
    """Return classes and groups, worst first, and how many nodes have no group."""
    queries = view.queries
    groups, totals = queries.named("group"), queries.totals()
    evaluated_by_group = {group.name: group.evaluated for group in groups}
    ungrouped = without_group(evaluated_by_group, totals[-1].evaluated if totals else 0)
    return {
        "title": PAGE.title,
        "lead": [*_lead(queries), *map(as_sentence, ungrouped)],
        "figures": [
            charts.coverage_by_name(queries.named("class"), "classes", "Coverage by class"),
            charts.coverage_by_name(groups, "groups", "Coverage by group"),
        ],
        "range": None,
        "tables": view.tables("classes", "groups"),
    }


def _lead(queries: Queries) -> list[str]:
    """Say which promise the rows are about."""
    promised_slices = {
        row.slice for row in queries.named("class") + queries.named("group") if row.own_promise
    }
    paid = "p-values here pay for looking at all of them."
    if not promised_slices:
        return [
            "The promise is for all nodes together. A class or group below its band is a reason "
            f"to look closer, not a broken promise; {paid}"
        ]
    runs = queries.runs(last=1)
    each = "each class" if "class" in promised_slices else "each group"
    other = "Groups" if "class" in promised_slices else "Classes, and groups by another property,"
    return [
        f"Promise in force: {promise_of_run(runs[-1])}." if runs else "",
        f"The promise is for {each}: a row below its anytime bound is a broken promise and raises "
        f"an alarm of its own. {other} have none: below its band such a row is a reason to look "
        f"closer; {paid}",
    ]


PAGE = Page("classes", "Classes & groups", "/classes", "page.html", build)
