"""The lists: the piles of the last run, what they promise, what share turned out wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import count_worklist
from ringfence.connector.store.queries.worklist_filter import WorklistFilter
from ringfence.connector.store.worklist.listed_nodes import ListedRun, read_listed_runs
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.view import PageView
from ringfence.jobs.views.charts.list_trade_off import list_trade_off
from ringfence.jobs.views.list_at_shares import list_at_shares, nearest
from ringfence.jobs.views.list_curve import read_curve
from ringfence.jobs.worklist.lead import MAX_COUNTED
from ringfence.jobs.worklist.list_choice import OPEN, choose_list


@dataclass(frozen=True, slots=True)
class Pile:
    """Nodes of a run on a list, or on none: how many, how many of them wait for a person."""

    kind: str
    name: str
    nodes: int
    waiting: int
    words: str

    def address(self, seq: int) -> str:
        """The worklist of the pile."""
        return f"/worklist?{urlencode({'list': self.name, 'run': seq})}"


def build(dashboard: OpenDashboard, view: PageView) -> Values:
    """Return the piles of the newest run with lists, the slider, and the table of all lists."""
    queries = view.queries
    runs = read_listed_runs(queries.store, queries.project)
    piles = read_piles(queries, runs[-1]) if runs else []
    slider = show_slider(dashboard, view, runs[-1]) if runs else None
    return {
        "title": PAGE.title,
        "slider": slider,
        "seq": runs[-1].seq if runs else 0,
        "piles": [{"pile": pile, "address": pile.address(runs[-1].seq)} for pile in piles],
        "most": MAX_COUNTED,
        "figures": slider["figures"] if slider else [],
        "tables": view.tables("lists"),
    }


def show_slider(dashboard: Dashboard, view: PageView, run: ListedRun) -> Values:
    """Return a list of the newest run at several shares; the address names list and share."""
    lists = {facts.terms.name: facts for facts in run.lists}
    facts = lists.get(view.address.get("list")) or run.lists[0]
    curve = read_curve(dashboard.settings, facts.terms)
    active = {model.version for model in view.queries.models() if model.state == "active"}
    if curve is not None and curve.model not in active:
        curve = None
    rows, unknown = list_at_shares(view.queries, facts, run.seq, curve)
    validation = curve.validation if curve is not None else 0
    chosen = nearest(rows, _asked_share(view.address.get("share"), facts.terms.may_be_wrong))
    drawn = [(row.may_be_wrong, row.listed, row.found) for row in curve.rows] if curve else []
    words = [as_sentence(row.words(facts, run.seq, unknown, validation)) for row in rows]
    return {
        "names": list(lists),
        "name": facts.terms.name,
        "percent": round(100 * rows[chosen].share),
        "most": round(100 * rows[-1].share),
        "rows": list(zip(rows, words, strict=True)),
        "chosen": chosen,
        "measured": curve is not None,
        "figures": [list_trade_off(facts.terms.name, drawn)] if drawn else [],
    }


def _asked_share(text: str, otherwise: float) -> float:
    """The share that an address asks for, in per cent."""
    return int(text) / 100 if text.isascii() and text.isdecimal() and len(text) < 4 else otherwise


def read_piles(queries: ProjectQueries, run: ListedRun) -> list[Pile]:
    """Return a run's lists, those that investigate first, and the nodes on none; counted so far."""
    piles = [
        _count(
            queries, run, "clear" if facts.terms.is_clear else "investigate", facts.terms.name,
            as_sentence(facts.words),
        )
        for facts in sorted(run.lists, key=lambda facts: facts.terms.is_clear)
    ]  # fmt: skip
    if OPEN in {facts.terms.name for facts in run.lists}:
        return piles  # nothing in an address would mean the nodes on none
    return [*piles, _count(queries, run, OPEN, OPEN, "On no list: no list says what they are.")]


def _count(queries: ProjectQueries, run: ListedRun, kind: str, name: str, words: str) -> Pile:
    asked = WorklistFilter("", list_=name, run=run.seq)
    waiting = choose_list(queries, asked, [run]).wanted
    every = replace(waiting, known="any", state="any")
    nodes, unknown = (count_worklist(queries, each, MAX_COUNTED) for each in (every, waiting))
    return Pile(kind, name, nodes, unknown, words)


PAGE = Page("lists", "Lists", "/lists", "lists.html", build)
