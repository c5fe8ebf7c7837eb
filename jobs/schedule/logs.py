"""One line per event on stderr: for people, or as JSON for machines. Never a value of the graph."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from ringfence.connector.errors import RingfenceError

logger = logging.getLogger("ringfence.schedule")
alarm_logger = logging.getLogger("ringfence.alarms")  # which channel failed, and why


def configure_logging(as_json: bool) -> None:
    """Write the scheduler's events to stderr, and keep other libraries' lines out of it.

    APScheduler's own lines would carry tracebacks, whose messages can hold values.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if as_json else TextLine())
    for own in (logger, alarm_logger):
        own.handlers = [handler]
        own.setLevel(logging.INFO)
        own.propagate = False
    logging.getLogger("apscheduler").setLevel(logging.CRITICAL)


def log_event(level: int, name: str, **fields: Any) -> None:
    """Log the event `name` with its fields."""
    logger.log(level, name, extra={"fields": fields})


def describe_error(error: RingfenceError) -> str:
    """Return found, needed and next on one line.

    >>> error = RingfenceError(found="no model", needed="a model", next_step="ringfence train")
    >>> describe_error(error)
    'no model; needed: a model; next: ringfence train'
    """
    parts = (
        error.found,
        error.needed and f"needed: {error.needed}",
        error.next_step and f"next: {error.next_step}",
    )
    return "; ".join(" ".join(part.split()) for part in parts if part)


class TextLine(logging.Formatter):
    """`2026-11-16T12:10:00Z INFO ended project=p job=score words="run 7"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = getattr(record, "fields", {})
        pairs = (f"{name}={_text(value)}" for name, value in fields.items())
        return " ".join((_moment(record), record.levelname, record.getMessage(), *pairs))


class JsonLine(logging.Formatter):
    """The same as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        head = {"time": _moment(record), "level": record.levelname, "event": record.getMessage()}
        return json.dumps(head | getattr(record, "fields", {}), default=str)


def _text(value: Any) -> str:
    text = str(value)
    plain = text and all(sign.isalnum() or sign in "-_.:/" for sign in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
