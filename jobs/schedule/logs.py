"""The scheduler's own events; how a line looks is `jobs.telemetry.log_lines`'s business."""

from __future__ import annotations

import logging
from typing import Any

from ringfence.connector.errors import RingfenceError

logger = logging.getLogger("ringfence.schedule")


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
