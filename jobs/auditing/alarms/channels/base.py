"""What a channel is, and what it sends."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ringfence.connector.alarm_records import AlarmEvent
from ringfence.connector.times import format_time
from ringfence.jobs.config.alarms import AlarmSettings

STEP_SECONDS = 10.0  # of silence, for connecting and for each answer


class Connection(Protocol):
    """A client with a socket that can be cut, such as `HTTPConnection` and `SMTP`."""

    sock: socket.socket | None


Track = Callable[[Connection], None]
"""Names a connection before it is opened, so that it can be cut when its time is over."""


@dataclass(frozen=True, slots=True)
class Message:
    """An alarm event of a project."""

    project: str
    event: AlarmEvent

    def body(self) -> dict[str, str | int]:
        """Return the event as a receiver gets it, as JSON values."""
        event = self.event
        return {
            "project": self.project,
            "number": event.n,
            "at": format_time(event.at_ns),
            "rule": event.rule,
            "was": event.was,
            "state": event.state,
            "words": event.words,
        }


@dataclass(frozen=True, slots=True)
class Channel:
    """A way to notify people: `send` returns once the receiver has accepted the message, or raises.

    Whatever it raises is logged, and the message is sent again by the next audit. `name` stands in
    the column `delivered` of the event.
    """

    name: str
    is_configured: Callable[[AlarmSettings], bool]
    send: Callable[[AlarmSettings, Message, Track], None]
