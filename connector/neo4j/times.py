"""Times between Neo4j's three ways of storing them and integer nanoseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ringfence.connector.mapping import TimeKind
from ringfence.connector.times import NANOSECONDS

if TYPE_CHECKING:
    from ringfence.connector.neo4j.bolt import DateTime

VALUE_TYPE: dict[TimeKind, str] = {
    "zoned": "ZONED DATETIME",
    "local": "LOCAL DATETIME",
    "milliseconds": "INTEGER",
}
"""What Cypher's `valueType()` says (before NOT NULL) for each kind."""

MAX_SECONDS = 9_223_372_035  # of 1970, either way: as nanoseconds they fit 64 bits (1677 to 2262)

# Whole seconds since 1970 of a value of the kind itself; nothing overflows here.
_AS_SECONDS: dict[TimeKind, str] = {
    "zoned": "{0}.epochSeconds",
    "local": "datetime({{datetime: {0}, timezone: 'UTC'}}).epochSeconds",
    "milliseconds": "{0} / 1000",
}

_AS_NS: dict[TimeKind, str] = {
    "zoned": "{0}.epochSeconds * 1000000000 + {0}.nanosecond",
    "local": "datetime({{datetime: {0}, timezone: 'UTC'}}).epochSeconds * 1000000000"
    " + {0}.nanosecond",
    "milliseconds": "{0} * 1000000",
}


def ns_expression(kind: TimeKind, quoted_property: str) -> str:
    """Return Cypher that turns a property such as ``n.`created_at``` into nanoseconds."""
    return _AS_NS[kind].format(quoted_property)


def checked_ns_expression(kind: TimeKind, variable: str) -> str:
    """Return Cypher for a value's nanoseconds, or for text about a value that has none.

    One such value must not end the query (`long overflow`), nor travel as it is: the driver has no
    years beyond 9999. The text is what a quarantine row says: the value, and its type.
    """
    seconds = _AS_SECONDS[kind].format(variable)
    return (
        f"CASE WHEN {variable} IS NULL THEN null "
        f"WHEN NOT {variable} IS :: {VALUE_TYPE[kind]} "
        f"THEN coalesce(toStringOrNull({variable}), 'a value') + ', ' + valueType({variable}) "
        f"WHEN {seconds} > {MAX_SECONDS} OR {seconds} < -{MAX_SECONDS} "
        f"THEN toString({variable}) + ', outside 1677 to 2262' "
        f"ELSE {ns_expression(kind, variable)} END"
    )


def as_parameter(kind: TimeKind, ns: int) -> DateTime | int:
    """Return the query parameter that compares with a property of this kind, so indexes are used.

    >>> as_parameter("milliseconds", 1_500_000)
    1
    >>> as_parameter("zoned", 1).iso_format()
    '1970-01-01T00:00:00.000000001+00:00'
    """
    from ringfence.connector.neo4j.bolt import DateTime  # the driver is slow to import

    if kind == "milliseconds":
        return ns // 1_000_000
    seconds, rest = divmod(ns, NANOSECONDS)
    moment = datetime.fromtimestamp(seconds, UTC)
    zone = UTC if kind == "zoned" else None
    return DateTime(
        moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, rest,
        tzinfo=zone,
    )  # fmt: skip


def datetime_of(ns: int) -> datetime:
    """Return nanoseconds since 1970 as the datetime that the driver stores as ZONED DATETIME."""
    return datetime.fromtimestamp(ns / NANOSECONDS, UTC)
