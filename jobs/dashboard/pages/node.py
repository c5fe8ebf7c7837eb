"""One node: set, p-values, neighbours, record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from fastapi import Query, Request

from ringfence.connector.store.worklist.marks import Mark, read_marks
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.neighbourhood import (
    MAX_BEYOND,
    MAX_OPENED,
    Opened,
    class_colours,
    name_of,
    place_neighbours,
)
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.dashboard.pages.worklist_place import MAX_LIST_CHARS, find_place
from ringfence.jobs.dashboard.security import remembered_name
from ringfence.jobs.views.explain import (
    Explanation,
    describe_class,
    describe_removal,
    explain,
    record_of,
)
from ringfence.jobs.views.explained_neighbours import ExplainedNeighbour, explain_neighbours
from ringfence.jobs.views.listed import describe_lists

if TYPE_CHECKING:
    from ringfence.connector.neo4j.driver import Graph

MAX_CHOICES = 24  # classes to choose from in a list; more are searched
MAX_BARS = 12  # p-values at once; the others are folded away


def build(
    dashboard: OpenDashboard,
    request: Request,
    key: Annotated[str, Query(max_length=512)] = "",
    listed: Annotated[str, Query(alias="list", max_length=MAX_LIST_CHARS)] = "",
    wide: Annotated[list[str], Query(alias="open", max_length=MAX_OPENED)] = [],  # noqa: B006
) -> Values:
    """Return what is known of the node with this key; the empty form without one."""
    explanation, around, marks = explain(dashboard.queries, key) if key else None, None, []
    if explanation is not None:
        around = ask_graph(dashboard, explanation, wide)
        explanation = replace(explanation, neighbours=None if around is None else around.neighbours)
    if explanation is not None:
        with dashboard.store.reading() as connection:
            marks = read_marks(connection, dashboard.settings.project, explanation.typed_key)
    may_mark = dashboard.guard.role_of(request) == "operator"
    named = dashboard.guard.user_header is not None
    values = show_node(explanation, key, dashboard.how_to_start(), around, listed)
    if explanation is not None:
        run, doubts = explanation.run, explanation.doubts
        values["lists"] = [
            as_sentence(words)
            for words in describe_lists(dashboard.queries, run, explanation.typed_key, doubts)
        ]
    place = None if explanation is None else find_place(dashboard.queries, explanation, listed)
    return values | {
        "place": place,
        "abouts": [] if explanation is None else sorted(explanation.levels),
        "about": place.class_ if place else "",
        "who": remembered_name(request),
        "marks": marks[::-1],
        "may_mark": may_mark,
        "named_by_proxy": named,
        "why_seconds": dashboard.settings.serve.why_seconds,
    }


@dataclass(frozen=True, slots=True)
class Around:
    """What the graph says of a node: neighbours, those of opened ones, and its properties."""

    neighbours: tuple[ExplainedNeighbour, ...]
    opened: tuple[Opened, ...]
    properties: tuple[tuple[str, str], ...]


def ask_graph(dashboard: Dashboard, explanation: Explanation, wide: Sequence[str]) -> Around | None:
    """Return what the graph says, if it answers in time.

    A node that had the key earlier has nothing: the graph shows the newest one.
    """
    if explanation.neighbours is not None:
        return Around(explanation.neighbours, (), ())
    mapping, queries = dashboard.settings.mapping(), dashboard.queries

    def ask(graph: Graph) -> Around:
        from ringfence.connector.neo4j.queries.node_values import properties_of

        around = explain_neighbours(queries, graph, mapping, explanation.typed_key)
        known = {name_of(neighbour) for neighbour in around}
        opened = []
        for name in [name for name in dict.fromkeys(wide) if name in known][:MAX_OPENED]:
            label, _, key = name.partition(" ")
            beyond = explain_neighbours(queries, graph, mapping, key, label, MAX_BEYOND)
            opened.append(Opened(name, beyond))
        properties = properties_of(graph, mapping, explanation.typed_key)
        return Around(around, tuple(opened), tuple(properties))

    return dashboard.graph.ask(ask)


def show_node(
    explanation: Explanation | None,
    asked: str,
    hint: str = "",
    around: Around | None = None,
    listed: str = "",
) -> Values:
    """Return the template's values; `hint` is the command that starts the graph."""
    marks: list[Mark] = []
    picture: list[Values] = []
    lines: list[Values] = []
    if explanation is not None:
        picture, lines = place_neighbours(
            explanation.neighbours or (),
            around.opened if around else (),
            _colours(explanation),
            explanation.typed_key,
            listed,
        )
    return {
        "marks": marks,
        "place": None,
        "abouts": [],
        "about": "",
        "who": "",
        "may_mark": False,
        "named_by_proxy": False,
        "why_seconds": 0,
        "title": PAGE.title if explanation is None else f"Node {explanation.key}",
        "asked": asked,
        "found": explanation,
        "picture": picture,
        "lines": lines,
        "opened": bool(around and around.opened),
        "properties": around.properties if around else (),
        "lists": [],
        "colours": _colours(explanation) if explanation else {},
        "record": record_of(explanation) if explanation else [],
        "state": describe_class(explanation) if explanation else "",
        "removed": _describe_removal(explanation),
        "own_levels": explanation is not None and _has_own_levels(explanation),
        "hint": hint,
        "max_bars": MAX_BARS,
        "max_choices": MAX_CHOICES,
        "figures": [],
    }


def _has_own_levels(explanation: Explanation) -> bool:
    """Whether some class was compared with another level than alpha."""
    return any(level not in (None, explanation.alpha) for level in explanation.levels.values())


def _describe_removal(explanation: Explanation | None) -> str:
    if explanation is None or explanation.removed_ns is None:
        return ""
    return as_sentence(describe_removal(explanation.removed_ns))


def _colours(explanation: Explanation) -> dict[str, str]:
    """A colour for each class that the node's page names."""
    return class_colours([*{*explanation.levels, *(bar.class_ for bar in explanation.p_values)}])


PAGE = Page("node", "Node", "/node", "node.html", build)
