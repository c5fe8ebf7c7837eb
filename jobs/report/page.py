"""The report as one HTML file: styles and pictures inside, nothing loaded, prints well."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ringfence import __version__
from ringfence.connector.store.queries.changes import read_changes
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.times import format_time
from ringfence.jobs.lifecycle.card import ModelCard, read_card
from ringfence.jobs.views import charts
from ringfence.jobs.views.charts.model import Figure
from ringfence.jobs.views.promise import promise_of_run
from ringfence.jobs.views.renderers.svg import draw
from ringfence.jobs.views.tables import TABLES, Table, cell
from ringfence.jobs.views.visible import visible

MAX_TABLE_ROWS = 60
MAX_CARDS = 5  # in the page; `--pack` has all
NAMES = ("coverage-run", "coverage-total", "classes", "groups", "lists", "runs", "drift", "models",
         "shadows", "alarms", "quarantine", "corrections", "removals",
         "chain")  # fmt: skip


def html(
    queries: ProjectQueries,
    chain_sentence: str,
    now_ns: int,
    *,
    of_record: bool = False,
    without: Collection[str] = (),
    period: Table | None = None,
) -> str:
    """Return the whole page.

    `of_record`: `now_ns` is the end of the record, and the page does not say when it was written.
    `without` are tables that are left out; `period` is a table that comes first.
    """
    env = Environment(
        loader=PackageLoader("ringfence.jobs.report"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals |= {"cell": cell, "draw": lambda figure: Markup(draw(figure))}  # noqa: S704
    total, runs = queries.verdict(), queries.runs(last=1)
    return env.get_template("report.html").render(
        project=queries.project,
        version=__version__,
        now=format_time(now_ns),
        of_record=of_record,
        style=Markup(_style()),  # noqa: S704
        total=total,
        promise=promise_of_run(runs[-1]) if runs else "",
        counts=queries.counts(),
        chain=chain_sentence,
        figures=pictures(queries),
        tables=[
            *([] if period is None else [_short(period)]),
            *(_short(TABLES[name].read(queries)) for name in NAMES if name not in without),
        ],
        cards=newest_cards(queries),
    )


def newest_cards(queries: ProjectQueries, most: int | None = MAX_CARDS) -> list[ModelCard]:
    """Return the cards of the newest model versions, and of the one in use."""
    models = queries.models()
    chosen = models if most is None else models[-most:]
    versions = [model.version for model in models if model in chosen or model.state == "active"]
    return [read_card(queries.store, queries.project, version) for version in reversed(versions)]


def pictures(queries: ProjectQueries) -> list[Figure]:
    """Return the figures that have something to show."""
    per_run, states, runs = queries.coverage("run"), queries.monitor_states(), queries.runs()
    every = [
        charts.coverage_per_run(per_run),
        charts.cumulative(queries.coverage("total")),
        charts.coverage_by_name(queries.named("class"), "classes", "Coverage by class"),
        charts.coverage_by_name(queries.named("group"), "groups", "Coverage by group"),
        charts.set_sizes(per_run),
        charts.thresholds(runs),
        charts.capital(states, 200),
        charts.distances(states),
    ]
    changes = read_changes(queries)
    return charts.with_changes([figure for figure in every if not figure.empty], changes)


def _short(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "columns": table.first_columns,
        "rows": table.rows[:MAX_TABLE_ROWS],
        "left": max(0, len(table.rows) - MAX_TABLE_ROWS),
        "empty": table.empty,
    }


def _style() -> str:
    return files("ringfence.jobs.report").joinpath("templates", "report.css").read_text("utf-8")
