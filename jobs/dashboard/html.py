"""From data to HTML: templates with everything escaped, tables, figures as JSON for plotly."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ringfence import __version__
from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.views.charts.model import Figure, shortened
from ringfence.jobs.views.tables import cell
from ringfence.jobs.views.version_names import short_versions
from ringfence.jobs.views.visible import visible

NAVIGATION = tuple((page.address, page.title) for page in PAGES if page.part_of is None)
TONES = {
    "kept": "good", "ok": "good", "watch": "warn", "pending": "warn", "broken": "bad",
    "firing": "bad", "far below": "bad", "active": "good",
}  # fmt: skip


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the templates' environment."""
    templates = Environment(
        loader=PackageLoader("ringfence.jobs.dashboard"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "navigation": NAVIGATION,
        "root": "",  # before every address; of a project among several the path of its own
        "version": __version__,
        "cell": cell,
        "tone": tone,
    }
    templates.filters |= {"embedded": embedded, "brief": brief, "exact": exact}
    templates.filters["short"] = short_versions
    return templates


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return environment().get_template(template).render(**values)


def exact(text: Any) -> Markup:
    """Return text as a form sends it back, character by character, for `value="…"`."""
    return escape(str(text))


def brief(text: Any, most: int = 160) -> str:
    """Return a text as far as a page has room for it; files have it whole.

    >>> brief("mule"), brief("x" * 200, 3)
    ('mule', 'xx…')
    """
    return shortened(str(text), most)


def tone(state: str) -> str:
    """Return how a verdict or state is coloured.

    >>> tone("broken"), tone("not enough known yet")
    ('bad', 'calm')
    """
    return TONES.get(state, "calm")


def embedded(figure: Figure) -> Markup:
    """Return a figure as JSON that can stand inside a script element: no `<` ever."""
    text = json.dumps(figure.as_dict(), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704


@lru_cache(maxsize=8)
def static(name: str) -> bytes:
    """Return a file that comes with the dashboard."""
    return files("ringfence.jobs.dashboard").joinpath("static", name).read_bytes()
