"""Drift: the exchangeability monitor, distances, volumes, the advisor's opinion on the rule."""

from __future__ import annotations

from ringfence.jobs.auditing.alarms.rules import WATCH_DELTA
from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence, read_tables
from ringfence.jobs.views import charts
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor


def build(dashboard: OpenDashboard) -> Values:
    """Return what the monitor says now, the advice, and the charts over the runs."""
    queries = dashboard.queries
    states, runs = queries.monitor_states(), queries.runs()
    monitor = ExchangeabilityMonitor.start()
    if states and states[-1].watch:
        monitor = ExchangeabilityMonitor.from_dict(states[-1].watch["state"])
    mark = queries.audit_mark()
    advice = mark.advice if mark else None
    lines = advice["words"].splitlines() if advice else []
    return {
        "title": PAGE.title,
        "monitor": as_sentence(monitor.describe(WATCH_DELTA)),
        "alarm": bool(monitor.labels) and monitor.alarm(WATCH_DELTA),
        "advice": [line.removeprefix("- ") for line in lines],
        "nodes": advice["nodes"] if advice else 0,
        "rule": runs[-1].rule if runs else dashboard.settings.conformal.rule,
        "figures": [
            charts.capital(states, 2 / WATCH_DELTA),
            charts.distances(states),
            charts.thresholds(runs),
            charts.arrivals(runs),
            charts.degrees(queries.coverage("run")),
        ],
        "tables": read_tables(queries, "drift"),
    }


PAGE = Page("drift", "Drift", "/drift", "drift.html", build)
