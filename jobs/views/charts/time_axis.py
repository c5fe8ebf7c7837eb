"""The time axis of charts: a run is a point at the moment when it was decided, in UTC.

Places along such an axis are milliseconds since 1970, which JSON, plotly and browsers share.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Protocol

TIME_LABEL = "time (UTC), a point per run"
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
STEPS = (
    SECOND, 2 * SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND,
    MINUTE, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 182 * DAY, 365 * DAY,
)  # fmt: skip


class DecidedRun(Protocol):
    """A row about one run."""

    @property
    def seq(self) -> int:
        """Number of the run."""

    @property
    def decided_ns(self) -> int:
        """When it was decided."""


def run_times(rows: Sequence[DecidedRun]) -> list[float]:
    """Return the places of runs on a time axis."""
    return [row.decided_ns / 1e6 for row in rows]


def run_names(rows: Sequence[DecidedRun]) -> list[str]:
    """Return what each point is called."""
    return [f"run {row.seq}" for row in rows]


def date_ticks(low: float, high: float, about: int = 6) -> list[tuple[float, str]]:
    """Return at most `about` round moments within a time axis, with their texts.

    >>> [text for _, text in date_ticks(0, 4 * DAY)]
    ['1970-01-01', '1970-01-02', '1970-01-03', '1970-01-04', '1970-01-05']
    >>> [text for _, text in date_ticks(0, 50 * SECOND, 4)]
    ['00:00:00', '00:00:15', '00:00:30', '00:00:45']
    """
    wide = max(high - low, SECOND)
    step: float = next((step for step in STEPS if wide / step < about), 0)
    step = step or ceil(wide / about / (365 * DAY)) * 365 * DAY
    pattern = "%Y-%m-%d" if step >= DAY else "%m-%d %H:%M" if step >= MINUTE else "%H:%M:%S"
    first, last = ceil(low / step), int(high // step)
    return [
        (place * step, datetime.fromtimestamp(place * step / SECOND, UTC).strftime(pattern))
        for place in range(first, last + 1)
    ]
