"""A span of time that a page shows: which runs were decided in it, which chain entries written.

Runs are found by an index on their time. Chain entries have their time inside the sealed body; they
are written one after the other, so that a search by halves finds the first and the last of a span.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from ringfence.connector.store.tables import audit, run


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From one moment on and before another, in nanoseconds; None is open.

    `first` and `last` are the numbers of the first and last run in it, `runs` how many there are.
    """

    from_ns: int | None
    until_ns: int | None
    first: int
    last: int
    runs: int

    def holds(self, at_ns: int | None) -> bool:
        """Return whether a moment lies in the span; one that is not on record came before all.

        >>> TimeSpan(10, None, 1, 2, 2).holds(10), TimeSpan(None, 10, 1, 2, 2).holds(10)
        (True, False)
        """
        at_ns = at_ns or 0
        return (self.from_ns is None or at_ns >= self.from_ns) and (
            self.until_ns is None or at_ns < self.until_ns
        )

    def chosen(self, seq: ColumnElement[int], most: int | None) -> list[ColumnElement[bool]]:
        """Return the conditions on a column of run numbers; `most` spreads so many over the span.

        The last run of the span is always among them.
        """
        conditions: list[ColumnElement[bool]] = [seq.between(self.first, self.last)]
        stride = 1 if most is None else -(-self.runs // max(most, 1))
        if stride > 1:
            conditions.append((self.last - seq) % stride == 0)
        return conditions


def find_span(
    connection: Connection, project: str, from_ns: int | None, until_ns: int | None
) -> TimeSpan:
    """Return a span with its runs."""
    conditions = [run.c.project == project]
    if from_ns is not None:
        conditions.append(run.c.decided_ns >= from_ns)
    if until_ns is not None:
        conditions.append(run.c.decided_ns < until_ns)
    query = select(func.min(run.c.seq), func.max(run.c.seq), func.count()).where(*conditions)
    first, last, count = connection.execute(query).one()
    return TimeSpan(from_ns, until_ns, first or 0, last or -1, count)


def find_entries(connection: Connection, project: str, span: TimeSpan) -> tuple[int, int]:
    """Return the number of the first chain entry in a span, and of the first one after it."""
    newest = select(func.max(audit.c.n)).where(audit.c.project == project)
    entries = range(1, int(connection.execute(newest).scalar() or 0) + 1)

    def written_ns(n: int) -> int:
        body = select(audit.c.body).where(audit.c.project == project, audit.c.n == n)
        try:
            return int(json.loads(connection.execute(body).scalar() or "{}").get("at_ns") or 0)
        except (ValueError, TypeError, AttributeError):  # a damaged entry: the page says so
            return 0

    from_ns, until_ns = span.from_ns, span.until_ns
    first = 1 if from_ns is None else 1 + bisect_left(entries, from_ns, key=written_ns)
    end = len(entries) if until_ns is None else bisect_left(entries, until_ns, key=written_ns)
    return first, end + 1
