"""All runs with their outcomes, the models, and two runs to compare."""

from __future__ import annotations

from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.views import charts


def build(view: PageView) -> Values:
    """Return the runs of the range; the last two stand in the form that compares."""
    last = [run.seq for run in view.queries.runs(last=2)]
    return {
        "title": PAGE.title,
        "pair": (last[0], last[-1]) if last else ("", ""),
        "range": view.range(),
        "figures": view.marked(charts.arrivals(view.series.runs())),
        "tables": view.tables("runs", "models"),
    }


PAGE = Page("runs", "Runs", "/runs", "runs.html", build)
