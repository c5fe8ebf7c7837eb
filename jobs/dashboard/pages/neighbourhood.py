"""The neighbourhood of a node as a picture: every mapped label, neighbours opened by a click.

Places are computed here, so that the picture is drawn without a script.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from ringfence.jobs.dashboard.pages.page import Values
from ringfence.jobs.views.explained_neighbours import ExplainedNeighbour

COLOURS = 8
MAX_OPENED = 4  # neighbours whose own neighbours are shown
MAX_BEYOND = 10  # neighbours of an opened one
MAX_INNER_CIRCLE = 12  # more neighbours than these stand on two ellipses in turn
FAR_X, FAR_Y = 155.0, 100.0
BEYOND = (1.85, 1.5)  # how far opened neighbours' own ones stand, in turn; neighbours at 1
SPREAD = 0.16  # of a circle between two of them


@dataclass(frozen=True, slots=True)
class Opened:
    """A neighbour, by label and typed key, with its own neighbours."""

    name: str
    around: tuple[ExplainedNeighbour, ...]


def name_of(neighbour: ExplainedNeighbour) -> str:
    """Return what an address calls a neighbour: its label, empty for the classified one, and key.

    >>> name_of(ExplainedNeighbour("d1", None, None, None, "Device", "USES", "s:d1"))
    'Device s:d1'
    """
    return f"{neighbour.label} {neighbour.typed_key or neighbour.key}"


def class_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each class, by name, the same on every node's page; later ones recur."""
    return {name: f"c{place % COLOURS}" for place, name in enumerate(sorted(names))}


def place_neighbours(
    neighbours: Sequence[ExplainedNeighbour],
    opened: Sequence[Opened],
    colours: Mapping[str, str],
    typed_key: str,
    listed: str = "",
) -> tuple[list[Values], list[Values]]:
    """Return the nodes of the picture and its lines; a node that is met twice is drawn once.

    `listed` is the worklist from which the page was reached: links keep it.
    """
    here = (("key", typed_key), *((("list", listed),) if listed else ()))
    nodes: dict[str, Values] = {}
    lines: list[Values] = []
    wide = [node.name for node in opened]
    for i, neighbour in enumerate(neighbours):
        turn = 2 * math.pi * i / len(neighbours) - math.pi / 2
        far = 1.0 if len(neighbours) <= MAX_INNER_CIRCLE or i % 2 == 0 else 0.68
        node = _node(neighbour, turn, far, colours, here, wide)
        nodes[name_of(neighbour)] = node
        lines.append({"x1": 0, "y1": 0, "x2": node["x"], "y2": node["y"]})
    for place, beyond in enumerate(opened):
        start = nodes.get(beyond.name)
        others = [node for node in beyond.around if name_of(node) != f" {typed_key}"]
        for i, neighbour in enumerate(others):
            if start is None:
                break
            turn = start["turn"] + 2 * math.pi * SPREAD * (i - (len(others) - 1) / 2) / max(
                1, len(others) / 3
            )
            name = name_of(neighbour)
            if name not in nodes:
                nodes[name] = _node(
                    neighbour, turn, BEYOND[place % len(BEYOND)], colours, here, wide
                )
            end = nodes[name]
            lines.append({"x1": start["x"], "y1": start["y"], "x2": end["x"], "y2": end["y"]})
    return list(nodes.values()), lines


def _node(
    neighbour: ExplainedNeighbour,
    turn: float,
    far: float,
    colours: Mapping[str, str],
    here: Sequence[tuple[str, str]],
    wide: Sequence[str],
) -> Values:
    kind, text = describe_neighbour(neighbour)
    name = name_of(neighbour)
    others = [other for other in wide if other != name]
    asked = [*others, name] if name not in wide else others
    page = urlencode({"key": neighbour.typed_key or neighbour.key})
    opening = urlencode([*here, *(("open", other) for other in asked[-MAX_OPENED:])])
    return {
        "x": round(FAR_X * far * math.cos(turn), 1),
        "y": round(FAR_Y * far * math.sin(turn), 1),
        "turn": turn,
        "other": bool(neighbour.label),
        "kind": f"{kind} {colours.get(only_class(neighbour), '')}".strip(),
        "text": text,
        "label": neighbour.key[: 14 if neighbour.label else 10],
        "page": None if neighbour.label else f"/node?{page}",
        "opening": f"/node?{opening}#around",
        "opened": name in wide,
    }


def only_class(neighbour: ExplainedNeighbour) -> str:
    """The class of a neighbour, or the only one in its set; none where there are several."""
    if neighbour.class_ is not None or neighbour.set is None:
        return neighbour.class_ or ""
    return neighbour.set[0] if len(neighbour.set) == 1 else ""


def describe_neighbour(neighbour: ExplainedNeighbour) -> tuple[str, str]:
    """Return how a neighbour is drawn, and what is known of it."""
    if neighbour.label:
        return "other", f"{neighbour.name}, by {neighbour.relation}"
    if neighbour.class_ is not None:
        return "known", f"{neighbour.key}: {neighbour.class_}"
    if neighbour.set is None:
        return "none", f"{neighbour.key}: nothing known"
    names = f"may be {', '.join(neighbour.set)}" if neighbour.set else "no class conforms"
    return "set", f"{neighbour.key}: {names}"
