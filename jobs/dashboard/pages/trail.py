"""The audit trail: whether the chain fits, its last entries, corrections, changes of alarms."""

from __future__ import annotations

import json

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.dashboard.view import PageView


def build(dashboard: OpenDashboard, view: PageView) -> Values:
    """Return the state of the chain and the last entries."""
    state, sentence = dashboard.verify()
    return {
        "title": PAGE.title,
        "state": state,
        "verified": sentence,
        "figures": [],
        "range": view.range(),
        "tables": view.tables("chain", "corrections", "removals", "alarm-events"),
    }


def export_chain(queries: ProjectQueries) -> str:
    """Return the whole chain as JSON lines, oldest entry first."""
    return "".join(
        json.dumps(as_row(entry), ensure_ascii=True) + "\n" for entry in queries.whole_chain()
    )


PAGE = Page("trail", "Audit trail", "/trail", "trail.html", build)
