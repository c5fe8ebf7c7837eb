"""What a page is: address, title, template, and the function that builds the template's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ringfence.jobs.views.version_names import short_versions

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """One page. The parameters of `build` are FastAPI's: the dashboard, the address, the query.

    `part_of` is the address of the page under which the navigation shows this one; a page with an
    entry of its own has none.
    """

    name: str
    title: str
    address: str
    template: str
    build: Callable[..., Values]
    part_of: str | None = None

    @property
    def navigation_address(self) -> str:
        """The address of the entry that is marked while this page is open."""
        return self.part_of or self.address


def as_sentence(text: str) -> str:
    """Return text with a capital, a full stop, short versions, no line break before `%` or at `=`.

    >>> as_sentence("kept: all")
    'Kept: all.'
    """
    text = short_versions(text)
    whole = f"{text[:1].upper()}{text[1:]}." if text else ""
    return whole.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")
