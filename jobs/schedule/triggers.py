"""When a job is due: a cron line or "every 10 minutes", parsed and checked, with its next time.

Cron means what crontab(5) says: Sunday is 0 or 7 (APScheduler would take 0 for Monday). A line that
restricts both the day of the month and the day of the week is refused, because crontab reads that
as "either" and most people as "both".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from ringfence.connector.errors import ConfigError

UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
MAX_INTERVAL_SECONDS = 366 * UNIT_SECONDS["day"]
CRON_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY = re.compile(r"every\s+(?:(\d+)\s+)?(second|minute|hour|day)s?")
EXAMPLES = '"*/10 * * * *" (minute hour day month weekday), "every 10 minutes", or "" for never'
CHECK = "ringfence schedule --check"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger as configured, and the APScheduler trigger that follows it.

    `zone` says in which time zone the hours of a cron line are meant.
    """

    text: str
    zone: str
    timer: CronTrigger | IntervalTrigger

    @property
    def is_interval(self) -> bool:
        """Whether it counts from the last start instead of by the calendar."""
        return isinstance(self.timer, IntervalTrigger)

    def next_after(self, ns: int) -> int:
        """Return the first time strictly after `ns`, both in nanoseconds since 1970.

        >>> parse_trigger("every 2 minutes", "UTC", "score").next_after(0) // 10**9
        120
        >>> parse_trigger("30 2 * * *", "Europe/Berlin", "audit").next_after(0) // 3_600 / 10**9
        1.5
        """
        moment = EPOCH + timedelta(microseconds=ns // 1_000)
        if isinstance(self.timer, IntervalTrigger):
            following = moment + self.timer.interval
        else:
            following = self.timer.get_next_fire_time(None, moment + timedelta(microseconds=1))
        if following is None:
            raise _never(self.text, "[schedule]")
        since: timedelta = following.astimezone(UTC) - EPOCH
        return since // timedelta(microseconds=1) * 1_000


TIMES_COUNTED = 60
YEAR_NS = 365.25 * 86_400 * 10**9


def times_per_year(text: str, zone: str, job: str) -> float:
    """Return about how often a job is due in a year; 0 where it is switched off.

    >>> round(times_per_year("every 6 hours", "UTC", "score"))
    1461
    >>> round(times_per_year("30 2 * * *", "UTC", "score"))
    365
    """
    if not text.strip():
        return 0.0
    trigger, ns = parse_trigger(text, zone, job), 0
    for _ in range(TIMES_COUNTED):
        ns = trigger.next_after(ns)
    first = trigger.next_after(0)
    return YEAR_NS * (TIMES_COUNTED - 1) / (ns - first)


def parse_trigger(text: str, zone: str, job: str) -> Trigger:
    """Read a trigger of `job`; raise `ConfigError` for one that can't be read or never fires.

    >>> parse_trigger("every hour", "UTC", "score").is_interval
    True
    """
    where = f"[schedule] {job}"
    check_zone(zone)
    plain = " ".join(text.lower().split())
    timer = _interval(plain, where) if plain.startswith("every") else _cron(plain, zone, where)
    if timer.get_next_fire_time(None, datetime.now(UTC)) is None:
        raise _never(text, where)
    return Trigger(text, zone, timer)


def check_zone(name: str) -> None:
    """Raise `ConfigError` for a time zone that this machine doesn't know."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            found=f"[schedule] timezone is {name!r}, which this machine doesn't know",
            needed="a name of the IANA list, like UTC or Europe/Berlin",
            next_step="correct [schedule] timezone; where every name is unknown: "
            "pip install tzdata",
        ) from None


def _interval(text: str, where: str) -> IntervalTrigger:
    match = EVERY.fullmatch(text)
    seconds = int(match[1] or 1) * UNIT_SECONDS[match[2]] if match else 0
    if not 0 < seconds <= MAX_INTERVAL_SECONDS:
        raise _unreadable(f"{where} is {text!r}", where)
    return IntervalTrigger(seconds=seconds, timezone=UTC)


def _cron(text: str, zone: str, where: str) -> CronTrigger:
    fields = text.split()
    if len(fields) != 5:
        raise _unreadable(f"{where} is {text!r}: {len(fields)} fields where cron has 5", where)
    minute, hour, day, month, weekday = fields
    if day != "*" and weekday != "*":
        raise ConfigError(
            found=f"{where} is {text!r}: a day of the month and a weekday",
            needed="one of the two; crontab reads both together as `either`, people as `both`",
            next_step=f"correct {where}, then: {CHECK}",
        )
    try:
        return CronTrigger(
            minute=minute,
            hour=hour,
            day=day,
            month=month,
            day_of_week=_weekdays(weekday),
            timezone=ZoneInfo(zone),
        )
    except ValueError as error:
        raise _unreadable(f"{where} is {text!r}: {error}", where) from None


def _weekdays(field: str) -> str:
    """Spell crontab's numbers as the names of days: `0,2-4` becomes `sun,tue,wed,thu`.

    >>> _weekdays("0,2-4"), _weekdays("5-7"), _weekdays("mon-fri"), _weekdays("*")
    ('sun,tue,wed,thu', 'fri,sat,sun', 'mon-fri', '*')
    """
    return ",".join(_weekday(part) for part in field.split(","))


def _weekday(part: str) -> str:
    match = re.fullmatch(r"([0-7])(?:-([0-7]))?(?:/([1-7]))?", part)
    if match is None:
        return part
    first, step = int(match[1]), int(match[3] or 1)
    last = int(match[2]) if match[2] else 6 if match[3] else first
    if last < first:
        raise ValueError(f"the days {part} run backwards")
    return ",".join(dict.fromkeys(CRON_WEEKDAYS[number] for number in range(first, last + 1, step)))


def _unreadable(problem: str, where: str) -> ConfigError:
    section, key = where.split()
    return ConfigError(
        found=problem,
        needed=EXAMPLES,
        next_step=f'write {key} = "every 10 minutes" under {section}, then: {CHECK}',
    )


def _never(text: str, where: str) -> ConfigError:
    return ConfigError(
        found=f"{where} is {text!r}, a time that never comes",
        needed="a day that exists in its month",
        next_step=f"correct {where}, then: {CHECK}",
    )
