"""Durations of all kinds, as a number of seconds."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import MISSING, Encoder, Float32s, Values
from ringfence.models.encoders.scale import Scale

__all__ = ["DurationEncoder"]

SECONDS_PER_DAY = 86_400
SECONDS_PER_MONTH = 30.436875 * SECONDS_PER_DAY  # a twelfth of the Gregorian year


@dataclass(frozen=True, slots=True)
class DurationEncoder(Encoder):
    """Two columns: standardised seconds, and ``missing``; a month has 30.436875 days."""

    scale: Scale

    @classmethod
    def fit(cls, values: Values) -> Self:
        """Measure the seconds.

        >>> hours = [dt.timedelta(hours=1), dt.timedelta(hours=3)]
        >>> DurationEncoder.fit(hours).transform([dt.timedelta(hours=2)]).tolist()
        [[0.0, 0.0]]
        """
        return cls(Scale.fit(_seconds_of(values)))

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        return cls(Scale.restore(facts))

    def facts(self) -> dict[str, Any]:
        """Return the scale."""
        return self.scale.facts()

    @property
    def names(self) -> tuple[str, ...]:
        """Seconds and missing."""
        return ("seconds", MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, 2]."""
        found = _seconds_of(values)
        return np.column_stack([self.scale.apply(found), np.isnan(found)]).astype(np.float32)


def _seconds_of(values: Values) -> NDArray[np.float64]:
    """Seconds [n]; NaN where a value is no duration. A numpy array keeps its timedelta64."""
    found = list(values)
    return np.fromiter(map(_seconds, found), np.float64, len(found))


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
