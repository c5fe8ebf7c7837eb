"""One node: set, p-values, neighbours, record."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import Query

from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.views.explain import (
    ExplainedNeighbour,
    Explanation,
    describe_class,
    explain,
    record_of,
)

MAX_INNER_CIRCLE = 12  # more neighbours than these stand on two ellipses in turn


def build(dashboard: OpenDashboard, key: Annotated[str, Query(max_length=512)] = "") -> Values:
    """Return what is known of the node with this key; the empty form without one."""
    explanation = None
    if key:
        mapping = dashboard.settings.mapping()
        explanation = explain(dashboard.queries, key, dashboard.graph(), mapping)
    return show_node(explanation, key, dashboard.how_to_start())


def show_node(explanation: Explanation | None, asked: str, hint: str = "") -> Values:
    """Return the template's values; `hint` is the command that starts the graph."""
    return {
        "title": PAGE.title if explanation is None else f"Node {explanation.key}",
        "asked": asked,
        "found": explanation,
        "picture": _picture(explanation.neighbours or ()) if explanation else [],
        "record": record_of(explanation) if explanation else [],
        "state": describe_class(explanation) if explanation else "",
        "hint": hint,
        "figures": [],
    }


def _picture(neighbours: tuple[ExplainedNeighbour, ...]) -> list[Values]:
    """Neighbours on an ellipse around the node."""
    placed = []
    for i, neighbour in enumerate(neighbours):
        turn = 2 * math.pi * i / len(neighbours) - math.pi / 2
        far = 1.0 if len(neighbours) <= MAX_INNER_CIRCLE or i % 2 == 0 else 0.68
        kind, text = _describe_neighbour(neighbour)
        placed.append(
            {
                "x": round(155 * far * math.cos(turn), 1),
                "y": round(100 * far * math.sin(turn), 1),
                "kind": kind,
                "text": text,
                "label": neighbour.key[:10],
                "key": neighbour.key,
            }
        )
    return placed


def _describe_neighbour(neighbour: ExplainedNeighbour) -> tuple[str, str]:
    if neighbour.class_ is not None:
        return "known", f"{neighbour.key}: {neighbour.class_}"
    if neighbour.set is None:
        return "none", f"{neighbour.key}: nothing known"
    names = f"may be {', '.join(neighbour.set)}" if neighbour.set else "no class conforms"
    return "set", f"{neighbour.key}: {names}"


PAGE = Page("node", "Node", "/node", "node.html", build)
