"""Dates, datetimes and times of day: places on the clock and in the calendar, as sine and cosine.

A cycle gets its two columns only where training spans at least two turns of it: with less, the day
of the year would name single days (flights of 2013: accuracy later in the year .341 with it, .532
without). How long ago something was is left out: it drifts. How long after another date of the same
node it was does not: option ``since`` names that column.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import (
    MISSING,
    Encoder,
    EncoderRefused,
    Float32s,
    Values,
    plain_values,
)
from ringfence.models.encoders.scale import Scale

__all__ = ["CalendarEncoder", "DateEncoder", "TimeEncoder", "days_between", "moments_of"]

NONE = -1
MINUTES_PER_DAY = 1_440
DAYS_TO_UNIX = 719_163  # the proleptic ordinal of 1970-01-01
CYCLES = {"hour": MINUTES_PER_DAY, "weekday": 7, "month": 12, "year": 366}
DAYS_OF_TWO_TURNS = {"hour": 2, "weekday": 14, "month": 731, "year": 731}


@dataclass(frozen=True, slots=True)
class CalendarEncoder(Encoder):
    """Sine and cosine of each cycle, 0 where the value has no such part, and ``missing``.

    The wall clock counts: a zoned time by its own zone. Option ``cycles``: a list out of hour,
    weekday, month and year, to have them although training spans too little time. Option ``since``:
    another column with dates; values are then pairs with its values, and two columns more say how
    many days lie between them, and whether one of the two is missing.
    """

    cycles: tuple[str, ...]
    other: str = ""
    days: Scale | None = None
    options: ClassVar[Mapping[str, Any]] = {"cycles": None, "since": ""}
    offered: ClassVar[tuple[str, ...]] = ("hour", "weekday", "year")

    @classmethod
    def fit(cls, values: Values, cycles: list[str] | None = None, since: str = "") -> Self:
        """Choose the cycles.

        >>> days = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(30)]
        >>> DateEncoder.fit(days).names
        ('weekday sine', 'weekday cosine', 'missing')
        """
        days = Scale.fit(days_between(values)) if since else None
        moments = [value for value, _ in values] if since else values
        if cycles is not None:
            unknown = [name for name in cycles if name not in CYCLES]
            if unknown:
                raise EncoderRefused(f"no cycle {unknown[0]!r}; there are {', '.join(CYCLES)}")
            return cls(tuple(dict.fromkeys(cycles)), since, days)
        return cls(cls._shown_cycles(*moments_of(moments)), since, days)

    @classmethod
    def _shown_cycles(cls, days: NDArray[np.int64], minutes: NDArray[np.int64]) -> tuple[str, ...]:
        """The cycles that the values go through at least twice."""
        dated = days[days != NONE]
        span = int(dated.max() - dated.min()) + 1 if len(dated) else 0
        there = cls.offered if (minutes > 0).any() else tuple(c for c in cls.offered if c != "hour")
        return tuple(cycle for cycle in there if span >= DAYS_OF_TWO_TURNS[cycle])

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        days = Scale.restore(facts["days"]) if "days" in facts else None
        return cls(tuple(facts["cycles"]), facts.get("since", ""), days)

    def facts(self) -> dict[str, Any]:
        """Return the cycles, and what days since another date are compared with."""
        if self.days is None:
            return {"cycles": list(self.cycles)}
        return {"cycles": list(self.cycles), "since": self.other, "days": self.days.facts()}

    @property
    def names(self) -> tuple[str, ...]:
        """Sine and cosine of each cycle, and missing."""
        parts = [f"{cycle} {wave}" for cycle in self.cycles for wave in ("sine", "cosine")]
        if self.days is None:
            return (*parts, MISSING)
        return (*parts, MISSING, f"days since {self.other}", f"no days since {self.other}")

    def transform(self, values: Values) -> Float32s:
        """Return [n, 2 cycles + 1], with ``since`` [n, 2 cycles + 3].

        Sines from a table have the same bits on any CPU.
        """
        if self.days is None:
            return self._transform_own(values)
        between = days_between(values)
        cycles = self._transform_own([value for value, _ in values])
        more = [self.days.apply(between), np.isnan(between)]
        return np.column_stack([cycles, *more]).astype(np.float32)

    def _transform_own(self, values: Values) -> Float32s:
        days, minutes = moments_of(values)
        absent = (days == NONE) & (minutes == NONE)
        parts = [_table(cycle)[_places(cycle, days, minutes)] for cycle in self.cycles]
        return np.column_stack([*parts, absent.astype(np.float32)]).astype(np.float32)


@dataclass(frozen=True, slots=True)
class DateEncoder(CalendarEncoder):
    """A date: weekday and time of year."""

    offered: ClassVar[tuple[str, ...]] = ("weekday", "year")


@dataclass(frozen=True, slots=True)
class TimeEncoder(CalendarEncoder):
    """A time of day without a date: the hour, always."""

    options: ClassVar[Mapping[str, Any]] = {"cycles": None}

    @classmethod
    def _shown_cycles(cls, days: NDArray[np.int64], minutes: NDArray[np.int64]) -> tuple[str, ...]:
        return ("hour",)


def moments_of(values: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the proleptic day number and the minute of the day of each value; -1 for none.

    Python's and Neo4j's dates and times, numpy's datetime64, and text in ISO 8601.

    >>> moments_of([dt.datetime(1970, 1, 1, 2, 30), dt.date(1970, 1, 2), "1970-01-03", "x"])
    (array([719163, 719164, 719165,     -1]), array([150,  -1,  -1,  -1]))
    """
    moments = [_moment(value) for value in plain_values(values)]
    both = np.array(moments, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def days_between(pairs: Values) -> NDArray[np.float64]:
    """Return how many days the first of each pair is after the second; NaN where one is missing.

    Hours count where both have them.

    >>> days_between([("2026-01-03", "2026-01-01"), (None, "2026-01-01")]).tolist()
    [2.0, nan]
    """
    (days, minutes), (from_days, from_minutes) = (
        moments_of([pair[at] for pair in pairs]) for at in (0, 1)
    )
    timed = (minutes != NONE) & (from_minutes != NONE)
    between = (days - from_days) + np.where(timed, minutes - from_minutes, 0) / MINUTES_PER_DAY
    return np.where((days == NONE) | (from_days == NONE), np.nan, between)


def _moment(value: Any) -> tuple[int, int]:
    try:
        if isinstance(value, str):
            value = _parsed(value)
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        day = getattr(value, "to_ordinal", None) or getattr(value, "toordinal", None)
        hour = getattr(value, "hour", None)
        minute = NONE if hour is None else hour * 60 + value.minute
        return (NONE if day is None else _checked_day(day())), _checked_minute(minute)
    except (ValueError, OverflowError, TypeError, AttributeError):
        return NONE, NONE


def _parsed(text: str) -> dt.datetime | dt.date | dt.time | None:
    """ISO 8601 text, its first 40 characters."""
    short = text.strip()[:40]
    likely = (dt.datetime, dt.time) if len(short) > len("2013-01-01") else (dt.date, dt.time)
    for kind in likely:
        try:
            return kind.fromisoformat(short)
        except ValueError:
            continue
    return None


def _checked_day(day: int) -> int:
    if not 1 <= day <= dt.date.max.toordinal():
        raise ValueError(day)
    return day


def _checked_minute(minute: int) -> int:
    if not NONE <= minute < MINUTES_PER_DAY:
        raise ValueError(minute)
    return minute


def _places(cycle: str, days: NDArray[np.int64], minutes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each value stands in a cycle; -1 (the table's last row) where it has no such part."""
    if cycle == "hour":
        return minutes
    dated = np.where(days == NONE, DAYS_TO_UNIX, days)
    if cycle == "weekday":
        place = (dated + 6) % 7
    else:
        unix = (dated - DAYS_TO_UNIX).astype("datetime64[D]")
        start = unix.astype("datetime64[Y]")
        month = unix.astype("datetime64[M]").astype(np.int64) % 12
        place = (
            month if cycle == "month" else (unix - start.astype("datetime64[D]")).astype(np.int64)
        )
    return np.where(days == NONE, NONE, place)


def _table(cycle: str) -> Float32s:
    """Sine and cosine of each place of a cycle, and a last row of zeros."""
    turns = CYCLES[cycle]
    angles = [2 * math.pi * place / turns for place in range(turns)]
    rows = [(math.sin(angle), math.cos(angle)) for angle in angles]
    return np.array([*rows, (0.0, 0.0)], np.float32)
