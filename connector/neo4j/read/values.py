"""From values as the driver gives them to plain Python values that the mirror keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ringfence.connector.mirror.raw_values import RawDuration, RawPoint
from ringfence.connector.neo4j.bolt import Date, DateTime, Duration, Point, Time, Vector
from ringfence.connector.neo4j.read.vectors import numbers

PLAIN = frozenset({int, float, str, bool, bytes, type(None)})


def plain_column(values: Sequence[Any]) -> list[Any]:
    """Return one property of many nodes; None where there is none, or none that can be kept."""
    if set(map(type, values)) <= PLAIN:
        return list(values)
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if type(value) in PLAIN:
        return value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Duration):
        months, days, seconds, nanoseconds = value
        return RawDuration(months, days, seconds, nanoseconds)
    if isinstance(value, Point):
        coordinates = tuple(float(number) for number in value if isinstance(number, int | float))
        finite = all(map(math.isfinite, coordinates))
        return RawPoint(int(value.srid or 0), coordinates) if finite else None
    if isinstance(value, DateTime | Date | Time):
        return _native(value)
    if isinstance(value, Vector):
        return [float(number) for number in numbers(value)]
    return None


def _native(value: DateTime | Date | Time) -> Any:
    """A date or time with Python's own precision; None for one that Python can't represent."""
    try:
        return value.to_native()
    except (ValueError, OverflowError, TypeError):
        return None
