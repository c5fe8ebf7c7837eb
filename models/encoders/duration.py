"""Durations of all kinds, as a number of seconds."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import Values
from ringfence.models.encoders.scale import Scale, ScaledEncoder

__all__ = ["DurationEncoder"]

SECONDS_PER_DAY = 86_400
SECONDS_PER_MONTH = 30.436875 * SECONDS_PER_DAY  # a twelfth of the Gregorian year


@dataclass(frozen=True, slots=True)
class DurationEncoder(ScaledEncoder):
    """Two columns: standardised seconds, and ``missing``; a month has 30.436875 days."""

    unit = "seconds"

    @classmethod
    def fit(cls, values: Values) -> Self:
        """Measure the seconds.

        >>> hours = [dt.timedelta(hours=1), dt.timedelta(hours=3)]
        >>> DurationEncoder.fit(hours).transform([dt.timedelta(hours=2)]).tolist()
        [[0.0, 0.0]]
        """
        return cls(Scale.fit(_seconds_of(values)))

    @staticmethod
    def read_numbers(values: Values) -> NDArray[np.float64]:
        """Return seconds [n]."""
        return _seconds_of(values)


def _seconds_of(values: Values) -> NDArray[np.float64]:
    """Seconds [n]; NaN where a value is no duration. A numpy array keeps its timedelta64."""
    plain = list(values)
    return np.fromiter(map(_seconds, plain), np.float64, len(plain))


def _seconds(value: Any) -> float:
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, np.timedelta64):
        return math.nan if np.isnat(value) else float(value / np.timedelta64(1, "s"))
    parts = [getattr(value, name, None) for name in ("months", "days", "seconds", "nanoseconds")]
    if not all(isinstance(part, int) for part in parts):
        return math.nan
    months, days, seconds, nanoseconds = (float(part) for part in parts if part is not None)
    return months * SECONDS_PER_MONTH + days * SECONDS_PER_DAY + seconds + nanoseconds * 1e-9
