"""Why one node has its set: neighbours, relationship types and columns by what they do to it.

Computed on request, one node at a time and within `[serve] why_seconds`; nothing is stored and no
set changes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from fastapi import HTTPException, Query

from ringfence.connector.errors import ConfigError, RingfenceError
from ringfence.jobs.dashboard.dependencies import OpenDashboard
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.explanation.reasons import odds_factor
from ringfence.jobs.views.explain import Explanation, explain, levels_of

if TYPE_CHECKING:
    from ringfence.jobs.dashboard.context import Dashboard
    from ringfence.jobs.explanation.reasons import Reason, Reasons

MAX_EDGES = 24  # neighbours in the picture
MAX_BARS = 20  # columns and relationship types
MAX_ROWS = 60
MAX_CHOICES = 12  # classes that a link makes the weights about
MAX_STROKE = 9.0  # of the strongest neighbour's line, in the picture's units
MIN_STROKE = 0.8
MAX_WAIT_SECONDS = 2.0  # for another node that is being explained
MAX_INNER_CIRCLE = 12  # more neighbours than these stand on two ellipses in turn

_at_work = threading.Lock()


def build(
    dashboard: OpenDashboard,
    key: Annotated[str, Query(max_length=512)] = "",
    class_: Annotated[str, Query(alias="class", max_length=512)] = "",
) -> Values:
    """Return why the node with this key has its set; `class` is the one that weights are about.

    Without a key the page asks for one.
    """
    if not dashboard.settings.serve.why_seconds:
        raise HTTPException(404, "this page is off: [serve] why_seconds is 0")
    if not key:
        return {"title": PAGE.title, "figures": [], "found": None}
    explanation = explain(dashboard.queries, key)
    if explanation is None:
        raise HTTPException(404, "no node with this key was evaluated")
    try:
        reasons, problem = ask_reasons(dashboard, explanation), None
    except RingfenceError as error:
        reasons, problem = None, error
    return show_reasons(explanation, reasons, problem, class_)


def ask_reasons(dashboard: Dashboard, explanation: Explanation) -> Reasons:
    """Compute the reasons, one node at a time, within the configured seconds."""
    from ringfence.connector.neo4j.driver import require_answer
    from ringfence.jobs.explanation.find import find_reasons
    from ringfence.jobs.project.workspace import Workspace

    settings = dashboard.settings
    graph = dashboard.graph.ask(require_answer)
    if graph is None:
        raise ConfigError(
            found="the graph gave no answer within two seconds",
            needed="the graph that the mirror was read from",
            next_step=dashboard.how_to_start(),
        )
    if not _at_work.acquire(timeout=MAX_WAIT_SECONDS):
        raise HTTPException(503, "another node is being explained; ask again in some seconds")
    try:
        workspace = Workspace(settings, settings.mapping(), graph, dashboard.store)
        reasons = find_reasons(
            workspace,
            explanation.typed_key,
            explanation.run.model,
            levels_of(explanation),
            method="exact",
            seconds=settings.serve.why_seconds,
        )
        require_an_answer(reasons)
        return reasons
    finally:
        _at_work.release()


def require_an_answer(reasons: Reasons) -> None:
    """Raise, naming what was not looked at, if the time was over before the first question."""
    if reasons.stopped and not reasons.p_values:
        raise ConfigError(
            found=f"{reasons.stopped}: none of {reasons.left_unasked:,} questions about "
            f"{reasons.neighbours:,} neighbours, their types and the columns was asked",
            needed="more time",
            next_step="[serve] why_seconds in the configuration; or: ringfence explain KEY --why",
        )


def show_reasons(
    explanation: Explanation,
    reasons: Reasons | None,
    problem: RingfenceError | None = None,
    asked_class: str = "",
) -> Values:
    """Return the template's values."""
    values: Values = {
        "title": f"Why node {explanation.key} has its set",
        "found": explanation,
        "problem": problem,
        "why": reasons,
        "figures": [],
        "back": f"/node?{urlencode({'key': explanation.typed_key})}",
    }
    if reasons is None:
        return values
    place = _focus(reasons, asked_class)
    neighbours = [reason for reason in reasons.reasons if reason.part.kind == "neighbour"]
    others = [reason for reason in reasons.reasons if reason.part.kind != "neighbour"]
    order = sorted(range(len(reasons.classes)), key=lambda at: -reasons.p_values[at])
    names = [reasons.classes[at] for at in order]
    return values | {
        "focus": reasons.classes[place],
        "because": as_sentence(reasons.sentence),
        "focus_p": reasons.p_values[place],
        "focus_level": reasons.levels[place],
        "choices": [
            (name, f"/why?{urlencode({'key': explanation.typed_key, 'class': name})}")
            for name in dict.fromkeys([*names[:MAX_CHOICES], reasons.classes[place]])
        ],
        "edges": place_edges(_strongest(neighbours, reasons, place)[:MAX_EDGES], reasons, place),
        "drawn": min(len(neighbours), MAX_EDGES),
        "bars": draw_bars(_strongest(others, reasons, place)[:MAX_BARS], reasons, place),
        "rows": [_row(reason, reasons, place) for reason in reasons.reasons[:MAX_ROWS]],
        "smallest": [as_sentence(change.describe()) for change in reasons.smallest],
        "another_set": set(reasons.classes_in_set) != set(explanation.classes),
    }


def effect_of(reason: Reason, reasons: Reasons, place: int) -> float:
    """How much a part adds to a class's log odds: what they are now minus what without it.

    An answer without evidence, of an older version, has the p-values alone.
    """
    if len(reason.evidence) > place:
        return reason.evidence[place]
    return reasons.p_values[place] - reason.p_values[place]


def place_edges(neighbours: Sequence[Reason], reasons: Reasons, place: int) -> list[Values]:
    """Neighbours on an ellipse around the node, their lines as thick as their effects."""
    most = max((abs(effect_of(neighbour, reasons, place)) for neighbour in neighbours), default=0.0)
    placed = []
    for i, neighbour in enumerate(neighbours):
        turn = 2 * math.pi * i / len(neighbours) - math.pi / 2
        far = 1.0 if len(neighbours) <= MAX_INNER_CIRCLE or i % 2 == 0 else 0.66
        effect = effect_of(neighbour, reasons, place)
        placed.append(
            {
                "x": round(160 * far * math.cos(turn), 1),
                "y": round(100 * far * math.sin(turn), 1),
                "width": round(MIN_STROKE + (MAX_STROKE - MIN_STROKE) * abs(effect) / most, 2)
                if most
                else MIN_STROKE,
                "way": _way(effect),
                "text": f"{neighbour.describe()}: odds {odds_factor(effect)}",
                "label": neighbour.part.name[:12],
            }
        )
    return placed


def draw_bars(
    parts: Sequence[Reason],
    reasons: Reasons,
    place: int,
) -> list[Values]:
    """Columns and relationship types as bars from the middle: for the class right, against left."""
    most = max((abs(effect_of(part, reasons, place)) for part in parts), default=0.0)
    drawn = []
    for part in parts:
        effect = effect_of(part, reasons, place)
        width = 50 * abs(effect) / most if most else 0.0
        drawn.append(
            {
                "name": part.part.name if part.part.kind == "column" else f"all {part.part.name}",
                "value": part.value,
                "x": round(50.0 if effect >= 0 else 50.0 - width, 2),
                "width": round(width, 2),
                "way": _way(effect),
                "text": signed(effect),
                "odds": odds_factor(effect),
            }
        )
    return drawn


def signed(change: float) -> str:
    """Return a change of a p-value with its sign; no sign where it is none.

    >>> signed(0.0), signed(-0.25)
    ('0.000', '-0.250')
    """
    return f"{change:+.3f}" if round(change, 3) else "0.000"


def _focus(reasons: Reasons, asked: str) -> int:
    """The class that weights are about: the chosen one, or the likeliest."""
    if asked in reasons.classes:
        return reasons.classes.index(asked)
    return reasons.likeliest


def _strongest(parts: list[Reason], reasons: Reasons, place: int) -> list[Reason]:
    return sorted(parts, key=lambda part: -abs(effect_of(part, reasons, place)))


def _way(effect: float) -> str:
    return "for" if effect > 0 else "against" if effect < 0 else "nothing"


def _row(reason: Reason, reasons: Reasons, place: int) -> Values:
    comes = [f"{name} comes in" for name in reason.enters]
    goes = [f"{name} goes out" for name in reason.leaves]
    return {
        "what": reason.describe(),
        "p": reason.p_values[place],
        "move": signed(reason.p_values[place] - reasons.p_values[place]),
        "odds": odds_factor(effect_of(reason, reasons, place)),
        "moved": reason.moved,
        "set": "; ".join(comes + goes) or "the same",
        "flips": reason.flips,
    }


PAGE = Page("why", "Why this set", "/why", "why.html", build, part_of="/node")
