"""What `ringfence doctor` found: one thing that was checked, and what to do where it isn't ok."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ringfence.connector.errors import RingfenceError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked; `fix` says what to do where it isn't ok."""

    level: Literal["ok", "warning", "error"]
    text: str
    fix: str = ""


def from_error(error: RingfenceError) -> Finding:
    """Return an error as a finding."""
    return Finding("error", error.found, error.next_step or error.needed)


NOT_YET = "not done yet: "


def not_yet(text: str, command: str) -> Finding:
    """Return a step that a new project has still before it: nothing is wrong."""
    return Finding("warning", f"{NOT_YET}{text}", command)


def attempt(text: str, check: Callable[[], object]) -> Finding:
    """Return `text` as ok where `check` passes, else the error that it raised."""
    try:
        check()
    except RingfenceError as error:
        return from_error(error)
    return Finding("ok", text)
