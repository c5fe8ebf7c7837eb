"""The lists: what they promise, and what share of their nodes turned out wrong."""

from __future__ import annotations

from ringfence.connector.store.worklist.listed_nodes import read_listed_runs
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.view import PageView


def build(view: PageView) -> Values:
    """Return the sentences of the newest lists, and the table of all."""
    queries = view.queries
    runs = read_listed_runs(queries.store, queries.project)
    sentences = [facts.words for facts in runs[-1].lists] if runs else []
    return {
        "title": PAGE.title,
        "lead": [as_sentence(sentence) for sentence in sentences],
        "figures": [],
        "range": None,
        "tables": view.tables("lists"),
    }


PAGE = Page("lists", "Lists", "/lists", "page.html", build)
