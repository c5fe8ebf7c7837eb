"""Times between Neo4j's three ways of writing them and integer nanoseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ringfence.connector.mapping import TimeKind

if TYPE_CHECKING:
    from neo4j.time import DateTime

NANOSECONDS = 1_000_000_000

VALUE_TYPE: dict[TimeKind, str] = {
    "zoned": "ZONED DATETIME",
    "local": "LOCAL DATETIME",
    "milliseconds": "INTEGER",
}
"""What Cypher's `valueType()` says (before NOT NULL) for each kind."""

_AS_NS: dict[TimeKind, str] = {
    "zoned": "{0}.epochSeconds * 1000000000 + {0}.nanosecond",
    "local": "datetime({{datetime: {0}, timezone: 'UTC'}}).epochSeconds * 1000000000"
    " + {0}.nanosecond",
    "milliseconds": "{0} * 1000000",
}


def ns_expression(kind: TimeKind, quoted_property: str) -> str:
    """Return Cypher that turns a property such as ``n.`created_at``` into nanoseconds."""
    return _AS_NS[kind].format(quoted_property)


def as_parameter(kind: TimeKind, ns: int) -> DateTime | int:
    """Return the query parameter that compares with a property of this kind, so indexes are used.

    >>> as_parameter("milliseconds", 1_500_000)
    1
    >>> as_parameter("zoned", 1).iso_format()
    '1970-01-01T00:00:00.000000001+00:00'
    """
    from neo4j.time import DateTime  # the driver is slow to import, and `words` needs none of it

    if kind == "milliseconds":
        return ns // 1_000_000
    seconds, rest = divmod(ns, NANOSECONDS)
    moment = datetime.fromtimestamp(seconds, UTC)
    zone = UTC if kind == "zoned" else None
    return DateTime(
        moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, rest,
        tzinfo=zone,
    )  # fmt: skip


def words(ns: int | None) -> str:
    """Return a time a person reads, to the second, in UTC.

    >>> words(0)
    '1970-01-01 00:00:00Z'
    """
    if ns is None:
        return "never"
    return datetime.fromtimestamp(ns // NANOSECONDS, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
