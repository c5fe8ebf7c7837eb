"""Worklist: the nodes that may be of a class, surest first, with filters and a query to paste."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from fastapi import HTTPException, Request

from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import typed_key_of
from ringfence.connector.neo4j.queries.worklist_query import worklist_query
from ringfence.connector.store.queries.sample import SampleFilter, count_sample, read_sample
from ringfence.connector.store.queries.worklist import (
    PAGE_ROWS,
    WorklistNode,
    groups_to_choose,
    read_worklist,
)
from ringfence.connector.store.queries.worklist_filter import WorklistFilter
from ringfence.jobs.dashboard.dependencies import OpenDashboard, Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.pages.worklist_place import SHOW
from ringfence.jobs.dashboard.security import remembered_name
from ringfence.jobs.worklist.lead import describe_worklist
from ringfence.jobs.worklist.list_choice import OPEN, ListChoice, choose_list, list_names
from ringfence.jobs.worklist.request import NAMES, conditions_of, filter_of, place_text
from ringfence.jobs.worklist.sample_table import SAMPLE_NAMES, sample_filter
from ringfence.jobs.worklist.table import classes_to_choose

MAX_CHOICES = 24  # buttons of classes; more are searched
MAX_FACETS = 12
MAX_OFFERED, MAX_SHOWN = 60, 8  # properties of nodes as columns
MAX_JSON_ROWS = 1_000  # of the JSON link; `after` in the answer leads on
MORE_FILTERS = (
    "min_size", "min_degree", "max_degree", "run", "from", "until", "group", "by", "key",
)  # fmt: skip
"""Those that are folded away until one of them is used."""
KNOWN_WORDS = {"no": "not known yet", "yes": "known", "any": "both"}
STATE_WORDS = {
    "open": "not done", "free": "nobody's", "claimed": "claimed", "done": "done",
    "confirmed": "confirmed", "false alarm": "false alarm", "undecided": "undecided", "any": "all",
}  # fmt: skip


def build(dashboard: OpenDashboard, request: Request) -> Values:
    """Return a page of the list; without a class, the classes to choose from."""
    queries = dashboard.queries
    if request.query_params.get("sample"):
        return build_sample(dashboard, request)
    classes = classes_to_choose(queries)
    wanted = wanted_by(request)
    choice = None
    if wanted.list_ is not None or wanted.class_ in classes:
        choice = list_wanted(dashboard.queries, wanted)
        wanted = choice.wanted
    chosen = choice is not None
    fitting = [] if chosen else classes_like(classes, wanted.class_)
    rows = read_worklist(queries, wanted, PAGE_ROWS + 1) if chosen else []
    more = len(rows) > PAGE_ROWS
    rows = rows[:PAGE_ROWS]
    asked = {name: request.query_params.get(name, "") for name in NAMES}
    address = {name: value for name, value in asked.items() if value}
    names = shown_columns(dashboard, request)
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
        "promises": _sentences(queries, choice),
        "on_list": choice is not None and choice.is_list,
        "all_of_class": _address({"class": wanted.class_}),
        "list_name": request.query_params.get("list", "") if chosen else "",
        "lists": [{"name": name, "address": _address({"list": name})} for name in _lists(queries)],
        "listed": _address(address, names).partition("?")[2],
        "names": names,
        "offered": offered_columns(dashboard),
        "values": values_of_rows(dashboard, rows, names),
        "facets": _facets(queries, address) if chosen else [],
        "may_mark": dashboard.guard.role_of(request) == "operator",
        "named_by_proxy": dashboard.guard.user_header is not None,
        "who": remembered_name(request),
        "chosen": wanted.class_ if chosen else None,
        "unknown_class": bool(wanted.class_) and not chosen and len(fitting) == len(classes),
        "asked": {"known": "no", "state": "open"} | asked | _defaults(wanted),
        "more_open": any(asked[name] for name in MORE_FILTERS),
        "page_rows": PAGE_ROWS,
        "rows": rows,
        "groups": [f"{name}={value}" for name, value in groups_to_choose(queries)],
        "known_words": KNOWN_WORDS,
        "state_words": STATE_WORDS,
        "csv": f"/csv{_address(address, names)}",
        "json": f"/api/v1{_address(address | {'limit': str(MAX_JSON_ROWS)})}",
        "first": _address(address, names) if wanted.after else None,
        "next": _address(address | {"after": place_text(last.place)}, names)
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


def _address(values: dict[str, str], names: Sequence[str] = ()) -> str:
    return f"/worklist?{urlencode([*values.items(), *((SHOW, name) for name in names)])}"


def list_wanted(queries: Queries, wanted: WorklistFilter) -> ListChoice:
    """Resolve the list of a filter; the answer is 400 where no run decided such a list."""
    try:
        return choose_list(queries, wanted)
    except ConfigError as error:
        raise HTTPException(400, f"{error.found}; needed: {error.needed}") from None


def _sentences(queries: Queries, choice: ListChoice | None) -> list[str]:
    return [] if choice is None else [as_sentence(w) for w in describe_worklist(queries, choice)]


def _lists(queries: Queries) -> list[str]:
    """The lists that runs decided, and the nodes on none of them."""
    names = list_names(queries)
    return [*names, *([OPEN] if names and OPEN not in names else [])]


def shown_columns(dashboard: OpenDashboard, request: Request) -> list[str]:
    """Return the properties that an address shows as columns, of those that can be."""
    asked = dict.fromkeys(name for name in request.query_params.getlist(SHOW)[:MAX_OFFERED])
    offered = set(offered_columns(dashboard)) if any(asked) else set()
    return [name for name in asked if name in offered][:MAX_SHOWN]


def offered_columns(dashboard: OpenDashboard) -> list[str]:
    """Return the properties of the graph's nodes that the table can show."""
    mapping = dashboard.settings.mapping()
    created = mapping.classified.created_at
    names = [*mapping.classified.column_names, *dashboard.settings.audit.groups]
    return list(dict.fromkeys([*names, *([created] if created else [])]))[:MAX_OFFERED]


def values_of_rows(
    dashboard: OpenDashboard, rows: Sequence[WorklistNode], names: Sequence[str]
) -> dict[str, list[str | None]] | None:
    """Return the chosen properties by key of the record; None if the graph does not answer."""
    if not names or not rows:
        return {}
    mapping, keys = dashboard.settings.mapping(), [row.node_key for row in rows]
    from ringfence.connector.neo4j.queries.node_values import values_of

    values = dashboard.graph.ask(lambda graph: values_of(graph, mapping, keys, names))
    return None if values is None else {key: values.get(typed_key_of(key), []) for key in keys}


def _facets(queries: Queries, address: dict[str, str]) -> list[dict[str, str]]:
    """Links that narrow the list to a group, or widen it again."""
    chosen = address.get("group")
    facets = [{"name": "all groups", "address": _address(address | {"group": ""}), "here": ""}]
    for name, value in groups_to_choose(queries)[:MAX_FACETS]:
        group = f"{name}={value}"
        here = "yes" if group == chosen else ""
        facets.append(
            {"name": group, "address": _address(address | {"group": group}), "here": here}
        )
    return facets if len(facets) > 1 else []


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
