"""Property values of every kind as JSON, and back as plain Python values.

Numbers, texts, booleans and lists of them are JSON as they are. The others are objects of one
field, which no property can be: {"d": date}, {"t": time of day}, {"z": datetime}, {"u": duration},
{"p": point}, {"b": bytes}. A value that is none of these is missing.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Sequence
from typing import Any, NamedTuple


class RawDuration(NamedTuple):
    """A duration as Neo4j has it: its parts can't be added up, months have no fixed length."""

    months: int
    days: int
    seconds: int
    nanoseconds: int


class RawPoint(tuple[float, ...]):
    """Coordinates, with the number of their coordinate system."""

    srid: int

    def __new__(cls, srid: int, coordinates: Sequence[float]) -> RawPoint:
        """Return a point of two or three coordinates."""
        point = super().__new__(cls, coordinates)
        point.srid = srid
        return point


def encode_row(values: Sequence[Any]) -> str:
    """Return the values of one node as JSON text, in ASCII.

    >>> encode_row([1, "é", None, dt.date(2013, 1, 1)])
    '[1,"\\\\u00e9",null,{"d":"2013-01-01"}]'
    """
    return json.dumps(values, default=_as_object, separators=(",", ":"))


def decode_row(text: str | bytes) -> list[Any]:
    """Return the values that `encode_row` took.

    >>> decode_row('[{"d":"2013-01-01"},[1,2]]')
    [datetime.date(2013, 1, 1), [1, 2]]
    """
    row: list[Any] = json.loads(text, object_hook=_from_object)
    return row


def _as_object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dt.datetime):
        return {"z": value.isoformat()}
    if isinstance(value, dt.date):
        return {"d": value.isoformat()}
    if isinstance(value, dt.time):
        return {"t": value.isoformat()}
    if isinstance(value, bytes | bytearray):
        return {"b": base64.b64encode(value).decode("ascii")}
    return None


def _from_object(fields: dict[str, Any]) -> Any:
    ((kind, value),) = fields.items()
    return _DECODERS[kind](value)


_DECODERS: dict[str, Any] = {
    "z": dt.datetime.fromisoformat,
    "d": dt.date.fromisoformat,
    "t": dt.time.fromisoformat,
    "b": lambda text: base64.b64decode(text),
    "u": lambda parts: RawDuration(*parts),
    "p": lambda parts: RawPoint(parts[0], parts[1:]),
}


def plain_value(value: Any) -> Any:
    """Return a value so that JSON keeps its kind: durations and points are tuples by nature.

    >>> plain_value(RawPoint(4326, (1.0, 2.0)))
    {'p': [4326, 1.0, 2.0]}
    """
    if isinstance(value, RawDuration):
        return {"u": list(value)}
    if isinstance(value, RawPoint):
        return {"p": [value.srid, *value]}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    return value
