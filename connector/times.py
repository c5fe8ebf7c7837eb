"""Times as integer nanoseconds since 1970, and as text that a person reads."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

NANOSECONDS = 1_000_000_000


def day_ns(text: str, days: int = 0) -> int:
    """Return when a day began in UTC, or so many days after it; text that is no day is an error.

    >>> day_ns("1970-01-02"), day_ns("1970-01-01", days=1)
    (86400000000000, 86400000000000)
    """
    day = date.fromisoformat(text.strip()) + timedelta(days)
    ns = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * NANOSECONDS
    if not 0 <= ns < 2**63:
        raise ValueError(f"{text!r} is not between 1970 and 2262")
    return ns


def format_time(ns: int | None) -> str:
    """Return a time as text, to the second, in UTC; "never" for None.

    >>> format_time(0)
    '1970-01-01 00:00:00Z'
    """
    if ns is None:
        return "never"
    return datetime.fromtimestamp(ns // NANOSECONDS, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
