"""The report as one HTML file: styles and pictures inside, nothing loaded, prints well."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ringfence import __version__
from ringfence.connector.times import words
from ringfence.jobs import figures
from ringfence.jobs.figures import Figure
from ringfence.jobs.looking import Look
from ringfence.jobs.report.svg import draw
from ringfence.jobs.shown import TABLES, Shown, cell

TABLE_ROWS = 60
NAMES = ("coverage-run", "coverage-total", "classes", "groups", "runs", "drift", "models",
         "alarms", "quarantine", "chain")  # fmt: skip


def html(look: Look, chain_words: str, now_ns: int) -> str:
    """Return the whole page."""
    env = Environment(
        loader=PackageLoader("ringfence.jobs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals |= {"cell": cell, "draw": lambda figure: Markup(draw(figure))}  # noqa: S704
    total = look.total()
    return env.get_template("report.html").render(
        project=look.project,
        version=__version__,
        now=words(now_ns),
        style=Markup(_style()),  # noqa: S704
        total=total,
        counts=look.counts(),
        chain=chain_words,
        figures=pictures(look),
        tables=[_short(TABLES[name](look)) for name in NAMES],
    )


def pictures(look: Look) -> list[Figure]:
    """Return the figures that have something to show."""
    per_run, watches, runs = look.coverage("run"), look.watches(), look.runs()
    every = [
        figures.coverage_per_run(per_run),
        figures.cumulative(look.coverage("total")),
        figures.classes(look.named("class"), "classes", "Coverage by class"),
        figures.classes(look.named("group"), "groups", "Coverage by group"),
        figures.set_sizes(per_run),
        figures.thresholds(runs),
        figures.stakes(watches, 200),
        figures.distances(watches),
    ]
    return [figure for figure in every if figure.x]


def _short(shown: Shown) -> dict[str, Any]:
    return {
        "title": shown.title,
        "columns": shown.columns,
        "rows": shown.rows[:TABLE_ROWS],
        "left": max(0, len(shown.rows) - TABLE_ROWS),
        "empty": shown.empty,
    }


def _style() -> str:
    return files("ringfence.jobs.report").joinpath("templates", "report.css").read_text("utf-8")
