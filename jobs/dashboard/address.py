"""Addresses of pages with parts of their query changed: links keep what a person chose before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

MAX_CHARS = 200
MAX_PARAMETERS = 200

Parameters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Address:
    """A page's path and the parameters of its query.

    >>> here = Address("/runs", (("from", "2025-10-09"), ("sort.runs", "seq")))
    >>> here.link({"sort.runs": "-seq"}, "runs")
    '/runs?from=2025-10-09&sort.runs=-seq#runs'
    """

    path: str
    parameters: Parameters = ()

    def get(self, name: str) -> str:
        """Return the last value of a parameter; empty where there is none."""
        return next((value for key, value in reversed(self.parameters) if key == name), "")

    def all(self, name: str) -> list[str]:
        """Return every value of a parameter."""
        return [value for key, value in self.parameters if key == name]

    def without(self, names: Iterable[str]) -> Parameters:
        """Return the parameters but for those of some names: a form's hidden fields."""
        left_out = set(names)
        return tuple(pair for pair in self.parameters if pair[0] not in left_out)

    def link(self, changes: dict[str, str], place: str = "") -> str:
        """Return the address with some parameters changed (empty: left out), at a place on it."""
        changed = tuple((name, value) for name, value in changes.items() if value)
        query = urlencode((*self.without(changes), *changed))
        return self.path + (f"?{query}" if query else "") + (f"#{place}" if place else "")


def page_address(path: str, parameters: Iterable[tuple[str, str]]) -> Address:
    """Return a request's address; what is too long for a page's parameter is left out."""
    kept = [
        (name, value)
        for name, value in parameters
        if value and len(name) <= MAX_CHARS and len(value) <= MAX_CHARS
    ]
    return Address(path, tuple(kept[:MAX_PARAMETERS]))


def root_of(project: str) -> str:
    """Return the path under which a project among several is served.

    >>> root_of("cards"), root_of("a/b c")
    ('/p/cards', '/p/a%2Fb%20c')
    """
    return f"/p/{quote(project, safe='')}"
