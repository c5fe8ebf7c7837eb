"""Times as integer nanoseconds since 1970, and as text that a person reads."""

from __future__ import annotations

from datetime import UTC, datetime

NANOSECONDS = 1_000_000_000


def format_time(ns: int | None) -> str:
    """Return a time as text, to the second, in UTC; "never" for None.

    >>> format_time(0)
    '1970-01-01 00:00:00Z'
    """
    if ns is None:
        return "never"
    return datetime.fromtimestamp(ns // NANOSECONDS, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
