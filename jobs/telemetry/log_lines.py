"""One line per event on stderr: for people, or as JSON for machines. Never a value of the graph.

Every line inside a run carries its id (`run_id`), whichever part of ringfence wrote it.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from ringfence.jobs.telemetry.run_id import current_run_id

LOGGER_NAMES = ("ringfence", "ringfence.schedule", "ringfence.alarms", "ringfence.run")
DRIVER = "neo4j"  # its warnings, which `connector.neo4j.access.driver_log` rewrites
logger = logging.getLogger("ringfence.run")


def configure_logging(as_json: bool) -> None:
    """Write ringfence's events to stderr, and keep other libraries' lines out of it.

    APScheduler's own lines would carry tracebacks, whose messages can hold values.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if as_json else TextLine())
    for name in LOGGER_NAMES:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
    logging.getLogger(DRIVER).handlers = [handler]
    logging.getLogger(DRIVER).propagate = False
    logging.getLogger("apscheduler").setLevel(logging.CRITICAL)


def is_configured() -> bool:
    """Whether this process writes ringfence's events already."""
    return bool(logger.handlers)


def log_run_event(level: int, name: str, **fields: Any) -> None:
    """Log an event of a run with its fields; without `configure_logging` it is dropped."""
    logger.log(level, name, extra={"fields": fields})


class TextLine(logging.Formatter):
    """`2026-11-16T12:10:00Z INFO ended project=p job=score words="run 7"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        pairs = (f"{name}={_text(value)}" for name, value in _fields(record).items())
        return " ".join((_moment(record), record.levelname, record.getMessage(), *pairs))


class JsonLine(logging.Formatter):
    """The same as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        head = {"time": _moment(record), "level": record.levelname, "event": record.getMessage()}
        return json.dumps(head | _fields(record), default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    run_id = current_run_id()
    return getattr(record, "fields", {}) | ({} if run_id is None else {"run_id": run_id})


def _text(value: Any) -> str:
    text = str(value)
    plain = text and all(sign.isalnum() or sign in "-_.:/" for sign in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
