"""Drift: the exchangeability monitor, distances, volumes, the advisor's opinion on the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ringfence.connector.records import Run
from ringfence.jobs.auditing.alarms.rules import WATCH_DELTA
from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.views import charts
from ringfence.models.exchangeability.advisor import HEADLINES
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor


def build(dashboard: OpenDashboard, view: PageView) -> Values:
    """Return what the monitor says now, the advice, and the charts over the runs."""
    queries = view.queries
    states, runs, last = view.series.monitor_states(), view.series.runs(), queries.runs(last=1)
    monitor = ExchangeabilityMonitor.start()
    newest = replace(queries, max_rows=1).monitor_states()
    if newest and newest[-1].watch:
        monitor = ExchangeabilityMonitor.from_dict(newest[-1].watch["state"])
    mark = queries.audit_mark()
    advice = mark.advice if mark else None
    lines = _advice_lines(advice) if advice else []
    return {
        "title": PAGE.title,
        "monitor": as_sentence(monitor.describe(WATCH_DELTA)),
        "alarm": bool(monitor.labels) and monitor.alarm(WATCH_DELTA),
        "advice": [line.removeprefix("- ") for line in lines],
        "nodes": advice["nodes"] if advice else 0,
        "rule": last[-1].rule if last else dashboard.settings.conformal.rule,
        "comparison": _describe_comparison(last),
        "range": view.range(),
        "figures": view.marked(
            charts.capital(states, 2 / WATCH_DELTA),
            charts.distances(states),
            charts.thresholds(runs),
            charts.arrivals(runs),
            charts.comparison_distances(runs),
            charts.degrees(runs),
        ),
        "tables": view.tables("drift", "before-labels"),
    }


def _advice_lines(advice: Mapping[str, Any]) -> list[str]:
    """The advice on record under today's headline: an older one may contradict the monitor."""
    first, *others = advice["words"].splitlines()
    return [HEADLINES.get(advice["rule"], first), *others]


def _describe_comparison(last: list[Run]) -> str:
    """What the last run found before any class of its nodes was known."""
    shift = (last[-1].shift or {}) if last else {}
    if not shift.get("compared"):
        return ""
    sentence = shift["sentence"] or (
        "the nodes of the last run are like the calibration nodes of the same moment, as far as "
        "tests can tell before any label"
    )
    return as_sentence(sentence)


PAGE = Page("drift", "Drift", "/drift", "drift.html", build)
