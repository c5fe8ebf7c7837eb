"""A proposed value with the reason for it, and what was left out with the reason for that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """A proposed value and the reason for it; `sure` is False where a person must check it."""

    value: object
    why: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A label, property or relationship type that is not proposed, and why."""

    name: str
    why: str
