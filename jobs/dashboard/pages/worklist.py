"""Worklist: the nodes that may be of a class, surest first, with filters and a query to paste."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import HTTPException, Request

from ringfence.connector.errors import ConfigError
from ringfence.connector.neo4j.worklist_query import worklist_query
from ringfence.connector.store.queries.sample import SampleFilter, count_sample, read_sample
from ringfence.connector.store.queries.worklist import (
    PAGE_ROWS,
    WorklistFilter,
    groups_to_choose,
    read_worklist,
)
from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.worklist.request import NAMES, conditions_of, filter_of, place_of
from ringfence.jobs.worklist.sample_table import SAMPLE_NAMES, sample_filter
from ringfence.jobs.worklist.table import classes_to_choose

MAX_CHOICES = 24  # buttons of classes; more are searched
MORE_FILTERS = ("min_size", "min_degree", "max_degree", "run", "from", "until", "group")
"""Those that are folded away until one of them is used."""
KNOWN_WORDS = {"no": "not known yet", "yes": "known", "any": "both"}
STATE_WORDS = {
    "open": "not done", "free": "nobody's", "claimed": "claimed", "done": "done", "any": "all",
}  # fmt: skip


def build(dashboard: OpenDashboard, request: Request) -> Values:
    """Return a page of the list; without a class, the classes to choose from."""
    queries = dashboard.queries
    if request.query_params.get("sample"):
        return build_sample(dashboard, request)
    classes = classes_to_choose(queries)
    wanted = wanted_by(request)
    chosen = wanted.class_ in classes
    fitting = [] if chosen else classes_like(classes, wanted.class_)
    rows = read_worklist(queries, wanted, PAGE_ROWS + 1) if chosen else []
    more = len(rows) > PAGE_ROWS
    rows = rows[:PAGE_ROWS]
    asked = {name: request.query_params.get(name, "") for name in NAMES}
    address = {name: value for name, value in asked.items() if value}
    last = rows[-1] if rows else None
    return {
        "title": PAGE.title,
        "figures": [],
        "sample": None,
        "sampled": None if chosen else count_sample(queries),
        "classes": [{"name": name, "address": _address({"class": name})} for name in classes],
        "choices": [
            {"name": name, "address": _address({"class": name})} for name in fitting[:MAX_CHOICES]
        ],
        "choices_left": max(0, len(fitting) - MAX_CHOICES),
        "class_count": len(classes),
        "max_choices": MAX_CHOICES,
        "chosen": wanted.class_ if chosen else None,
        "unknown_class": bool(wanted.class_) and not chosen and len(fitting) == len(classes),
        "asked": {"known": "no", "state": "open"} | asked | _defaults(wanted),
        "more_open": any(asked[name] for name in MORE_FILTERS),
        "page_rows": PAGE_ROWS,
        "rows": rows,
        "groups": [f"{name}={value}" for name, value in groups_to_choose(queries)],
        "known_words": KNOWN_WORDS,
        "state_words": STATE_WORDS,
        "csv": f"/csv/worklist?{urlencode(address)}",
        "first": _address(address) if wanted.after else None,
        "next": _address(address | {"after": place_of(last.p, last.node_key)})
        if more and last
        else None,
        "cypher": _cypher(dashboard, wanted) if chosen else "",
        "in_sql_alone": _in_sql_alone(wanted),
    }


def classes_like(classes: list[str], text: str) -> list[str]:
    """Return the classes with a text in their names; all of them where none has it.

    >>> classes_like(["mule", "retail"], "UL"), classes_like(["mule", "retail"], "x")
    (['mule'], ['mule', 'retail'])
    """
    asked = text.casefold().strip()
    return [name for name in classes if asked in name.casefold()] or classes


def build_sample(dashboard: OpenDashboard, request: Request) -> Values:
    """Return a page of the audit sample: nodes whose class somebody should find out."""
    queries = dashboard.queries
    wanted = sample_wanted_by(request)
    rows = read_sample(queries, wanted, PAGE_ROWS + 1)
    more, rows = len(rows) > PAGE_ROWS, rows[:PAGE_ROWS]
    asked = {name: request.query_params.get(name, "") for name in SAMPLE_NAMES}
    address = {"sample": "1"} | {name: value for name, value in asked.items() if value}
    last = rows[-1] if rows else None
    return {
        "title": PAGE.title,
        "figures": [],
        "sample": count_sample(queries),
        "asked": asked | {"known": wanted.known, "state": wanted.state},
        "page_rows": PAGE_ROWS,
        "rows": rows,
        "known_words": KNOWN_WORDS,
        "state_words": STATE_WORDS,
        "csv": f"/csv/worklist?{urlencode(address)}",
        "first": _address(address) if wanted.after else None,
        "next": _address(address | {"after": f"{last.seq} {last.node_key}"})
        if more and last
        else None,
    }


def sample_wanted_by(request: Request) -> SampleFilter:
    """Return the filter of the sample in an address; the answer is 400 where it can't be read."""
    try:
        return sample_filter(dict(request.query_params))
    except ConfigError as error:
        raise HTTPException(400, f"{error.found}; needed: {error.needed}") from None


def wanted_by(request: Request) -> WorklistFilter:
    """Return the filter in a request's address; the answer is 400 where it can't be read."""
    try:
        return filter_of(dict(request.query_params))
    except ConfigError as error:
        raise HTTPException(400, f"{error.found}; needed: {error.needed}") from None


def _defaults(wanted: WorklistFilter) -> dict[str, Any]:
    return {"known": wanted.known, "state": wanted.state}


def _address(values: dict[str, str]) -> str:
    return f"/worklist?{urlencode(values)}"


def _cypher(dashboard: OpenDashboard, wanted: WorklistFilter) -> str:
    settings = dashboard.settings
    return worklist_query(
        settings.mapping(), settings.project, wanted.class_, conditions_of(wanted)
    )


def _in_sql_alone(wanted: WorklistFilter) -> bool:
    """Whether a filter is about something that the graph does not have."""
    bounds = (wanted.min_degree, wanted.max_degree, wanted.from_ns, wanted.until_ns)
    return any(bound is not None for bound in bounds) or wanted.state != "any"


PAGE = Page("worklist", "Worklist", "/worklist", "worklist.html", build)
