"""A model's card as one HTML page or as Markdown; nothing is loaded from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape

from ringfence.jobs.lifecycle.card import ModelCard

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1f24; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
         border-bottom: 1px solid #d8dde3; overflow-wrap: anywhere; }
th { font-weight: 500; width: 34%; color: #4a5460; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e9ed; background: #14171b; } th { color: #a9b3be; }
  th, td { border-color: #333a42; }
}
"""


def as_html(card: ModelCard) -> str:
    """Return the card as a whole page."""
    title = escape(f"Model {card.version} of project {card.project}")
    parts = [
        f"<h2>{escape(section.title)}</h2>\n<table>\n"
        + "\n".join(
            f"<tr><th scope=row>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in section.rows
        )
        + "\n</table>"
        for section in card.sections
    ]
    body = "\n".join(parts)
    return (
        f"<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{title}</title>\n"
        f'<meta name=viewport content="width=device-width">\n<style>{STYLE}</style>\n'
        f"<h1>{title}: {escape(card.state)}</h1>\n{body}\n</html>\n"
    )


def as_markdown(card: ModelCard) -> str:
    """Return the card as Markdown; what a class or reason says can't form a table or a link."""
    lines = [f"# Model {_plain(card.version)} of project {_plain(card.project)}: {card.state}"]
    for section in card.sections:
        lines += ["", f"## {section.title}", "", "| what | value |", "|---|---|"]
        lines += [f"| {_plain(name)} | {_plain(value)} |" for name, value in section.rows]
    return "\n".join(lines) + "\n"


def as_json(card: ModelCard) -> str:
    """Return the card as JSON, with the whole manifest."""
    return json.dumps(card.as_json(), indent=2, allow_nan=False, default=str) + "\n"


def _plain(text: str) -> str:
    r"""Escape what Markdown would read as more than text.

    >>> print(_plain("a|b <i>[x](y)"))
    a\|b \<i\>\[x\](y)
    """
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


FORMATS: dict[str, Callable[[ModelCard], str]] = {
    "html": as_html,
    "markdown": as_markdown,
    "json": as_json,
}
"""How a card can be written, by the name of the format."""
