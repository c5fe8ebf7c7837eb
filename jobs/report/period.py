"""The period of a report or a pack: days or a quarter, in UTC; its coverage as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.engine import Store
from ringfence.connector.store.queries.period import PeriodCoverage, PeriodRun, runs_decided_in
from ringfence.connector.times import day_ns, format_time
from ringfence.jobs.views.tables import Column, Table

COVERAGE_COLUMNS = (
    Column(
        "of", "slice", "text", "All nodes, or those of a run, class, group or the audit sample."
    ),
    Column("name", "name", "text", "The run's number, the class, or property=value."),
    Column("model", "model", "text", "The model version that gave the sets."),
    Column("promised", "promised", "percent", "1 - alpha of the runs."),
    Column("nodes", "evaluated", "int", "Evaluated nodes."),
    Column("known", "known", "int", "Nodes whose class is known by now."),
    Column("covered", "covered", "int", "Nodes of known class whose set has it."),
    Column("coverage", "coverage", "percent", "Covered of known."),
    Column("set size", "mean_size", "num", "Mean number of classes in a set."),
    Column("unseen", "unseen", "int", "Nodes of a class that the model never saw.", extra=True),
)

EXAMPLE = (
    "ringfence report --quarter 2026Q3, or: ringfence report --from 2026-07-01 --to 2026-09-30"
)
QUARTER = re.compile(r"(\d{4})-?Q([1-4])", re.IGNORECASE)
LAST_DAYS = {1: "03-31", 2: "06-30", 3: "09-30", 4: "12-31"}


@dataclass(frozen=True, slots=True)
class Period:
    """From the beginning of one day to the end of another, in UTC; None is open.

    `until_ns` is the first moment after the period.
    """

    from_ns: int | None = None
    until_ns: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the period is open at both ends: all that is on record."""
        return self.from_ns is None and self.until_ns is None

    @property
    def sentence(self) -> str:
        """The period as a phrase.

        >>> parse_period("2026-07-01", None, None).sentence
        'from 2026-07-01 00:00:00Z on'
        """
        start = "" if self.from_ns is None else f"from {format_time(self.from_ns)}"
        end = "" if self.until_ns is None else f"before {format_time(self.until_ns)}"
        if start and end:
            return f"{start} and {end}"
        return (f"{start} on" if start else end) or "since the first run"

    def as_json(self) -> JsonObject:
        """Return both ends, in nanoseconds since 1970 and as text."""
        return {
            "from_ns": self.from_ns,
            "until_ns": self.until_ns,
            "from": None if self.from_ns is None else format_time(self.from_ns),
            "until": None if self.until_ns is None else format_time(self.until_ns),
        }


def parse_period(from_day: str | None, to_day: str | None, quarter: str | None) -> Period:
    """Return the period of `--from`, `--to` or `--quarter`; all of them may be missing.

    >>> parse_period(None, None, "2026Q3") == parse_period("2026-07-01", "2026-09-30", None)
    True
    """
    if quarter is not None:
        if from_day is not None or to_day is not None:
            raise ConfigError(
                found="--quarter together with --from or --to",
                needed="a quarter, or days",
                next_step=EXAMPLE,
            )
        from_day, to_day = _quarter_days(quarter)
    period = Period(_read_day("--from", from_day, 0), _read_day("--to", to_day, 1))
    if None not in (period.from_ns, period.until_ns) and period.from_ns >= period.until_ns:  # type: ignore[operator]
        raise ConfigError(
            found=f"--from {from_day} is after --to {to_day}",
            needed="a first day that is not after the last one",
            next_step=EXAMPLE,
        )
    return period


def runs_of_period(store: Store, project: str, period: Period) -> list[PeriodRun]:
    """Return the period's runs; `ConfigError` for a period without any."""
    with store.reading() as connection:
        runs = runs_decided_in(connection, project, period.from_ns, period.until_ns)
        every = runs if period.is_whole else runs_decided_in(connection, project, None, None)
    if runs or period.is_whole:
        return runs
    on_record = "no run is on record yet"
    if every:
        first, last = every[0].decided_ns, every[-1].decided_ns
        on_record = f"runs are on record from {format_time(first)} to {format_time(last)}"
    raise ConfigError(
        found=f"no run was decided {period.sentence}; {on_record}",
        needed="a period in which a run was decided",
        next_step=EXAMPLE if every else "ringfence score",
    )


def _quarter_days(text: str) -> tuple[str, str]:
    match = QUARTER.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            found=f"--quarter {text!r}",
            needed="a year and one of its four quarters, such as 2026Q3",
            next_step=EXAMPLE,
        )
    year, number = match.group(1), int(match.group(2))
    return f"{year}-{3 * number - 2:02}-01", f"{year}-{LAST_DAYS[number]}"


def _read_day(option: str, text: str | None, days: int) -> int | None:
    if text is None:
        return None
    try:
        date.fromisoformat(text.strip())
        return day_ns(text, days)
    except (ValueError, OverflowError):
        raise ConfigError(
            found=f"{option} {text!r}",
            needed="a day between 1970 and 2261, such as 2026-07-01 (UTC)",
            next_step=EXAMPLE,
        ) from None


def period_table(rows: Sequence[PeriodCoverage], sentence: str) -> Table:
    """Return the counts of a period; `sentence` says which."""
    cells = [
        row.as_json()
        | {
            "promised": 1 - row.alpha,
            "coverage": row.covered / row.known if row.known else None,
            "mean_size": row.classes_in_sets / row.evaluated if row.evaluated else None,
        }
        for row in rows
    ]
    title = f"Coverage of runs decided {sentence}"
    return Table("coverage-period", title, COVERAGE_COLUMNS, cells)
