"""One node: set, p-values, neighbours, record."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

from fastapi import Query, Request

from ringfence.connector.store.worklist.marks import Mark, read_marks
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.dependencies import OpenDashboard
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

COLOURS = 8
MAX_BARS = 12  # p-values at once; the others are folded away
MAX_INNER_CIRCLE = 12  # more neighbours than these stand on two ellipses in turn


def build(
    dashboard: OpenDashboard,
    request: Request,
    key: Annotated[str, Query(max_length=512)] = "",
    listed: Annotated[str, Query(alias="list", max_length=MAX_LIST_CHARS)] = "",
) -> Values:
    """Return what is known of the node with this key; the empty form without one."""
    explanation, marks = None, []
    if key:
        explanation = add_neighbours(dashboard, explain(dashboard.queries, key))
    if explanation is not None:
        with dashboard.store.reading() as connection:
            marks = read_marks(connection, dashboard.settings.project, explanation.typed_key)
    may_mark = dashboard.guard.role_of(request) == "operator"
    named = dashboard.guard.user_header is not None
    values = show_node(explanation, key, dashboard.how_to_start())
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


def add_neighbours(dashboard: Dashboard, explanation: Explanation | None) -> Explanation | None:
    """Return an explanation with the node's neighbours, if the graph answers in time.

    A node that had the key earlier has none: the graph shows the newest one.
    """
    if explanation is None or explanation.neighbours is not None:
        return explanation
    mapping, queries = dashboard.settings.mapping(), dashboard.queries
    neighbours = dashboard.graph.ask(
        lambda graph: explain_neighbours(queries, graph, mapping, explanation.typed_key)
    )
    return replace(explanation, neighbours=neighbours)


def show_node(explanation: Explanation | None, asked: str, hint: str = "") -> Values:
    """Return the template's values; `hint` is the command that starts the graph."""
    marks: list[Mark] = []
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
        "picture": _picture(explanation) if explanation else [],
        "colours": _colours(explanation) if explanation else {},
        "record": record_of(explanation) if explanation else [],
        "state": describe_class(explanation) if explanation else "",
        "removed": _describe_removal(explanation),
        "own_levels": explanation is not None and _has_own_levels(explanation),
        "hint": hint,
        "max_bars": MAX_BARS,
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
    """A colour for each class, by name, the same on every node's page; later ones recur."""
    names = sorted({*explanation.levels, *(value.class_ for value in explanation.p_values)})
    return {name: f"c{place % COLOURS}" for place, name in enumerate(names)}


def _picture(explanation: Explanation) -> list[Values]:
    """Neighbours on an ellipse around the node, coloured by the class that they are or must be."""
    neighbours, colours = explanation.neighbours or (), _colours(explanation)
    placed = []
    for i, neighbour in enumerate(neighbours):
        turn = 2 * math.pi * i / len(neighbours) - math.pi / 2
        far = 1.0 if len(neighbours) <= MAX_INNER_CIRCLE or i % 2 == 0 else 0.68
        kind, text = _describe_neighbour(neighbour)
        placed.append(
            {
                "x": round(155 * far * math.cos(turn), 1),
                "y": round(100 * far * math.sin(turn), 1),
                "kind": f"{kind} {colours.get(_only_class(neighbour), '')}".strip(),
                "text": text,
                "label": neighbour.key[:10],
                "key": neighbour.key,
            }
        )
    return placed


def _only_class(neighbour: ExplainedNeighbour) -> str:
    """The class of a neighbour, or the only one in its set; none where there are several."""
    if neighbour.class_ is not None or neighbour.set is None:
        return neighbour.class_ or ""
    return neighbour.set[0] if len(neighbour.set) == 1 else ""


def _describe_neighbour(neighbour: ExplainedNeighbour) -> tuple[str, str]:
    if neighbour.class_ is not None:
        return "known", f"{neighbour.key}: {neighbour.class_}"
    if neighbour.set is None:
        return "none", f"{neighbour.key}: nothing known"
    names = f"may be {', '.join(neighbour.set)}" if neighbour.set else "no class conforms"
    return "set", f"{neighbour.key}: {names}"


PAGE = Page("node", "Node", "/node", "node.html", build)
