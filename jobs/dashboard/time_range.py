"""The range picker: `from` and `until` in an address, as a form and as the rows of that time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from fastapi import HTTPException

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.times import NANOSECONDS, day_ns
from ringfence.jobs.dashboard.address import Address, Parameters
from ringfence.jobs.views.charts.downsample import MAX_POINTS

FROM, UNTIL = "from", "until"
PRESETS = (("7 days", 7), ("30 days", 30), ("1 year", 365))


@dataclass(frozen=True, slots=True)
class Preset:
    """A link to a range; `here` where it is the one that is shown."""

    title: str
    address: str
    here: bool


@dataclass(frozen=True, slots=True)
class TimeRange:
    """What the picker shows: the chosen days, links to others, and how many runs that leaves.

    `hidden` are the other parameters of the address, which the form passes on.
    """

    path: str
    from_day: str
    until_day: str
    hidden: Parameters
    presets: tuple[Preset, ...]
    sentence: str


def histories(queries: ProjectQueries, address: Address) -> tuple[ProjectQueries, ProjectQueries]:
    """Return queries for tables (the newest rows of the range) and for charts (spread over it).

    Without a range both are of the newest runs; the answer is 400 where a day can't be read.
    """
    from_ns, until_ns = _asked_ns(address, FROM, 0), _asked_ns(address, UNTIL, 1)
    if from_ns is None and until_ns is None:
        return queries, queries
    within = queries.within(from_ns, until_ns)
    return within, replace(within, max_rows=MAX_POINTS, spread=True)


def time_range(queries: ProjectQueries, history: ProjectQueries, address: Address) -> TimeRange:
    """Return the picker of a page; `history` are the queries within the range."""
    whole = queries.within(None, None).span
    days = _days_of_runs(queries) if whole and whole.runs else None
    presets: list[Preset] = []
    if days is not None:
        first, last = days
        presets.append(_preset(address, "newest", "", ""))
        for title, count in PRESETS:
            start = (last - timedelta(count - 1)).date().isoformat()
            presets.append(_preset(address, title, start, ""))
        presets.append(_preset(address, "all", first.date().isoformat(), ""))
    return TimeRange(
        path=address.path,
        from_day=address.get(FROM),
        until_day=address.get(UNTIL),
        hidden=address.without((FROM, UNTIL)),
        presets=tuple(presets),
        sentence=_describe(whole.runs if whole else 0, history, queries.max_rows),
    )


def _describe(runs: int, history: ProjectQueries, newest: int) -> str:
    if history.span is None:
        return f"The newest {newest:,} of {runs:,} runs." if runs > newest else ""
    inside = history.span.runs
    if not inside:
        return "No run was decided in this time."
    spread = f"; charts show at most {MAX_POINTS}, evenly spread" if inside > MAX_POINTS else ""
    return f"{inside:,} of {runs:,} runs{spread}."


def _preset(address: Address, title: str, start: str, end: str) -> Preset:
    here = (address.get(FROM), address.get(UNTIL)) == (start, end)
    return Preset(title, address.link({FROM: start, UNTIL: end}), here)


def _days_of_runs(queries: ProjectQueries) -> tuple[datetime, datetime]:
    first_ns, last_ns = queries.decided_between()
    return (
        datetime.fromtimestamp(first_ns // NANOSECONDS, UTC),
        datetime.fromtimestamp(last_ns // NANOSECONDS, UTC),
    )


def _asked_ns(address: Address, name: str, days: int) -> int | None:
    text = address.get(name).strip()
    if not text:
        return None
    try:
        return day_ns(text, days)
    except (ValueError, OverflowError):
        needed = "a day such as 2025-10-09"
        raise HTTPException(400, f"{name} is {text!r}; needed: {needed}") from None
