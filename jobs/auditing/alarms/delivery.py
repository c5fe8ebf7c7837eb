"""Delivery of alarm events: to every configured channel, at least once each.

Each channel stands alone. Whatever one of them raises, and however long its receiver takes, neither
ends the audit nor keeps another channel from sending: a message has `SEND_SECONDS`, failures of a
channel `FAILED_SECONDS_PER_AUDIT` together, and what was not taken is sent again by the next audit.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread

from ringfence.connector.alarm_records import AlarmEvent
from ringfence.connector.errors import RingfenceError
from ringfence.connector.store import alarms
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.alarms.channels import CHANNELS
from ringfence.jobs.auditing.alarms.channels.base import Channel, Connection, Message, Track
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.jobs.config.settings import Settings

DELIVERED_STATES = ("firing", "no data", "ok")  # pending alarms are not delivered
MAX_EVENTS_PER_AUDIT = 100
SEND_SECONDS = 15.0  # for one message in all: names, connecting, TLS, sending, the answer
FAILED_SECONDS_PER_AUDIT = 30.0  # then a channel's other events wait for the next audit
MAX_REASON_CHARS = 200

logger = logging.getLogger("ringfence.alarms")


def deliver(writer: Writer, settings: Settings) -> None:
    """Send the events a channel has not accepted yet; one that fails gets them again next time."""
    events = alarms.newest_events(writer.store, writer.lease.project, MAX_EVENTS_PER_AUDIT)
    told = [event for event in events if is_told(event)]
    delivered = {event.n: set(event.delivered) for event in told}
    for channel in CHANNELS:
        if channel.is_configured(settings.alarms):
            waiting = [event for event in told if channel.name not in delivered[event.n]]
            for event in _send_all(channel, settings.alarms, writer.lease.project, waiting):
                delivered[event.n].add(channel.name)
                alarms.mark_delivered(writer, event, delivered[event.n])


def tell_channels(settings: Settings, project: str, event: AlarmEvent) -> None:
    """Send an event that is on no record to every configured channel; failures are logged."""
    for channel in CHANNELS:
        if channel.is_configured(settings.alarms):
            list(_send_all(channel, settings.alarms, project, [event]))


def is_told(event: AlarmEvent) -> bool:
    """Whether an event is delivered: not that of a pending alarm, nor of one that never fired."""
    return event.state in DELIVERED_STATES and (event.was, event.state) != ("pending", "ok")


def send_within(seconds: float, send: Callable[[Track], None]) -> None:
    """Run `send`, raise what it raises, and `TimeoutError` when it takes longer than `seconds`.

    The time-outs of sockets begin anew with every byte, and looking up a name has none: so it works
    in a thread of its own, whose connections are cut when the time is over.
    """
    connections: list[Connection] = []
    failures: list[Exception] = []

    def work() -> None:
        try:
            send(connections.append)
        except Exception as error:  # noqa: BLE001  raised again below, in the caller's thread
            failures.append(error)

    thread = Thread(target=work, name="ringfence-alarm", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        for connection in connections:
            _cut(connection)
        raise TimeoutError(f"no end within {seconds:g} s")
    if failures:
        raise failures[0]


def _send_all(
    channel: Channel, settings: AlarmSettings, project: str, events: Sequence[AlarmEvent]
) -> Iterator[AlarmEvent]:
    """Send events by one channel; yield each that was taken, and log why others were not."""
    reason, taken, failed_seconds = "", 0, 0.0
    for event in events:
        if failed_seconds >= FAILED_SECONDS_PER_AUDIT:
            break
        began = time.monotonic()
        message = Message(project, event)
        try:
            send_within(SEND_SECONDS, partial(channel.send, settings, message))
        except Exception as error:  # noqa: BLE001  a channel of whatever kind must not end an audit
            reason = describe_failure(error)
            failed_seconds += time.monotonic() - began
        else:
            taken += 1
            yield event
    if reason:
        logger.warning(
            "project %s: alarm channel %s failed: %s. %d of %d events wait for the next audit",
            project, channel.name, reason, len(events) - taken, len(events),
        )  # fmt: skip


def describe_failure(error: Exception) -> str:
    r"""Return why a message was not taken, on one line; the receiver's bytes can't colour a log.

    >>> describe_failure(ConnectionError("gone\n\x1b[31m"))
    'ConnectionError: gone ?[31m'
    """
    text = error.found if isinstance(error, RingfenceError) else str(error)
    line = " ".join(f"{type(error).__name__}: {text}".split())
    return "".join(sign if sign.isprintable() else "?" for sign in line)[:MAX_REASON_CHARS]


def _cut(connection: Connection) -> None:
    """End a connection that another thread reads from."""
    if connection.sock is not None:
        with suppress(OSError):  # gone already
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
