"""The records of alarms: the state of a rule, and the changes that channels deliver."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlarmState:
    """State of one alarm rule now, and since when."""

    rule: str
    state: str
    words: str
    since_ns: int


@dataclass(frozen=True, slots=True)
class AlarmEvent:
    """A change of an alarm's state; `delivered` names the channels that have taken it."""

    n: int
    at_ns: int
    rule: str
    was: str
    state: str
    words: str
    delivered: tuple[str, ...]
