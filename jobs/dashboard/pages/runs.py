"""All runs, the models, and two runs to compare."""

from __future__ import annotations

from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, read_tables


def build(queries: Queries) -> Values:
    """Return the runs; the last two stand in the form that compares."""
    last = [run.seq for run in queries.runs(last=2)]
    return {
        "title": PAGE.title,
        "pair": (last[0], last[-1]) if last else ("", ""),
        "figures": [],
        "tables": read_tables(queries, "runs", "models"),
    }


PAGE = Page("runs", "Runs", "/runs", "runs.html", build, pictured=False)
