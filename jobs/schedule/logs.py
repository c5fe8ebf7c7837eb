"""The scheduler's own events; `jobs.telemetry.log_lines` formats the lines."""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger("ringfence.schedule")


def log_event(level: int, name: str, **fields: Any) -> None:
    """Log the event `name` with its fields."""
    logger.log(level, name, extra={"fields": fields})
