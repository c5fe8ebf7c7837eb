"""The filters of the worklist, as text in an address or on a command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from ringfence.connector.errors import ConfigError
from ringfence.connector.neo4j.queries.worklist_query import GraphConditions
from ringfence.connector.store.queries.worklist_filter import Known, Place, State, WorklistFilter
from ringfence.connector.times import day_ns

NUMBERS = {"min_p": float, "min_size": int, "max_size": int, "min_degree": int,
           "max_degree": int, "run": int}  # fmt: skip
CHOICES: dict[str, tuple[str, ...]] = {"known": get_args(Known), "state": get_args(State)}
MAX_NUMBER = 2**62
TEXTS = {"by": "by", "key": "key", "list": "list_"}
"""Texts as they are, with the filter's field; a key as far as it is typed."""
NAMES = ("class", *NUMBERS, "from", "until", "group", "known", "state", *TEXTS)
"""The parameters in an address, `after` (a place in the list) aside."""


def filter_of(given: Mapping[str, str]) -> WorklistFilter:
    """Return the filter of some parameters; empty ones are ignored.

    >>> wanted = filter_of({"class": "mule", "min_p": "0.5", "until": "2025-10-09", "run": ""})
    >>> wanted.min_p, wanted.until_ns, wanted.run, wanted.known
    (0.5, 1760054400000000000, None, 'no')
    """
    asked = {name: value for name, value in given.items() if value.strip()}
    wanted = WorklistFilter(given.get("class", "").replace("\x00", ""))
    changes: dict[str, Any] = {
        name: _number(name, asked[name]) for name in NUMBERS if name in asked
    }
    changes |= {name: _choice(name, asked[name]) for name in CHOICES if name in asked}
    if "from" in asked:
        changes["from_ns"] = _day_ns("from", asked["from"])
    if "until" in asked:  # that day is part of it
        changes["until_ns"] = _day_ns("until", asked["until"], days=1)
    if "group" in asked:
        changes["group"], _, changes["value"] = asked["group"].partition("=")
    changes |= {
        field: asked[name].replace("\x00", "") for name, field in TEXTS.items() if name in asked
    }
    if "after" in asked:
        changes["after"] = _place(asked["after"])
    return replace(wanted, **changes)


def require_names(given: Iterable[str]) -> None:
    """Refuse filters that the worklist doesn't have: one that is ignored gives a longer list.

    >>> require_names(["min_p", "run"])
    """
    unknown = sorted(set(given) - set(NAMES))
    if unknown:
        raise ConfigError(
            found=f"the worklist has no filter {unknown[0]!r}",
            needed=f"one of {', '.join(asked for asked in NAMES if asked != 'class')}",
        )


def place_text(place: Place) -> str:
    """Return where a page ended, as the next one's address has it; on a list with the run.

    >>> place_text((0.25, "s:a b")), place_text((3, 0.25, "s:a b"))
    ('0.25 s:a b', '3:0.25 s:a b')
    """
    *front, node_key = place
    return f"{':'.join(map(repr, front))} {node_key}"


def conditions_of(wanted: WorklistFilter) -> GraphConditions:
    """Return the part of a filter that the graph can apply: degrees and marks are only in SQL."""
    group = None if wanted.group is None else (wanted.group, wanted.value or "")
    known = {"no": False, "yes": True}.get(wanted.known)
    return GraphConditions(
        wanted.min_p, wanted.min_size, wanted.max_size, wanted.run, known, group,
        wanted.key, wanted.list_,
    )  # fmt: skip


def _number(name: str, text: str) -> float | int:
    try:
        value = cast(float | int, NUMBERS[name](text))
    except (ValueError, OverflowError):
        raise ConfigError(found=f"{name} is {text!r}", needed="a number") from None
    if not 0 <= value <= MAX_NUMBER:
        raise ConfigError(found=f"{name} is {text!r}", needed="a number from 0 on")
    return value


def _choice(name: str, text: str) -> str:
    if text not in CHOICES[name]:
        raise ConfigError(found=f"{name} is {text!r}", needed=" or ".join(CHOICES[name]))
    return text


def _day_ns(name: str, text: str, days: int = 0) -> int:
    """Return when a day began, or one after it, in UTC."""
    try:
        return day_ns(text, days)
    except (ValueError, OverflowError):
        raise ConfigError(found=f"{name} is {text!r}", needed="a day such as 2025-10-09") from None


def _place(text: str) -> Place:
    front, _, key = text.partition(" ")
    run, is_on_list, p = front.rpartition(":")
    try:
        place = float(p), key.replace("\x00", "")
        return (_run_number(run), *place) if is_on_list else place
    except ValueError:
        raise ConfigError(found=f"after is {text!r}", needed="a place in the list") from None


def _run_number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= MAX_NUMBER:
        raise ValueError(text)
    return number
