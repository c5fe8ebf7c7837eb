"""From data to HTML: templates with everything escaped, tables, figures as JSON for plotly."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ringfence import __version__
from ringfence.jobs.figures import Figure
from ringfence.jobs.shown import cell

PAGES = (
    ("/", "Today"),
    ("/coverage", "Coverage"),
    ("/classes", "Classes & groups"),
    ("/thresholds", "Thresholds"),
    ("/drift", "Drift"),
    ("/runs", "Runs"),
    ("/node", "Node"),
    ("/trail", "Audit trail"),
)
TONES = {
    "kept": "good", "ok": "good", "watch": "warn", "pending": "warn", "broken": "bad",
    "firing": "bad",
}  # fmt: skip


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the templates' environment."""
    found = Environment(
        loader=PackageLoader("ringfence.jobs.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"pages": PAGES, "version": __version__, "cell": cell, "tone": tone}
    found.filters["embedded"] = embedded
    return found


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return environment().get_template(template).render(**values)


def tone(word: str) -> str:
    """Return how a verdict or state is coloured.

    >>> tone("broken"), tone("not enough known yet")
    ('bad', 'calm')
    """
    return TONES.get(word, "calm")


def embedded(figure: Figure) -> Markup:
    """Return a figure as JSON that can stand inside a script element: no `<` ever."""
    text = json.dumps(figure.as_dict(), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704


@lru_cache(maxsize=8)
def static(name: str) -> bytes:
    """Return a file that comes with the dashboard."""
    return files("ringfence.jobs.web").joinpath("static", name).read_bytes()
