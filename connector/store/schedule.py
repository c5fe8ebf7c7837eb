"""The state of scheduled jobs: when each is due, which scheduler has claimed it, how it ended.

A scheduler's trigger only says when to poll. Whether a job runs is decided here, by the database's
clock and one conditional UPDATE, so that two schedulers never run the same due time twice. A job
stays due until its end is written: a process that dies leaves a claim, which runs out without its
heartbeat, and the job is due again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from ringfence.connector.store.engine import Store
from ringfence.connector.store.rows import ColumnValues
from ringfence.connector.store.tables import schedule
from ringfence.connector.times import NANOSECONDS

Next = Callable[[int], int]
"""From a time to the trigger's next time after it, both in nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A job as configured; a job that counts from its last start is due at once when it is new."""

    job: str
    trigger: str
    timezone: str
    next_after: Next
    at_once: bool


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job as SQL holds it: when it is due (None: switched off), who runs it, how it ended."""

    project: str
    job: str
    trigger: str
    timezone: str
    due_ns: int | None
    owner: str | None
    claimed_until_ns: int | None
    started_ns: int | None
    ended_ns: int | None
    outcome: str | None
    words: str | None
    failures: int
    failed_ns: int | None
    failed_words: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run a job that was due; `started_ns` tells one claim from the next."""

    project: str
    job: str
    owner: str
    started_ns: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of a job ended; `retry_seconds` brings it back before its next due time.

    `outcome` is done, alarm, stopped, held or failed.
    """

    outcome: str
    words: str
    retry_seconds: float | None = None


def plan(store: Store, project: str, jobs: Iterable[Planned]) -> None:
    """Write the configured jobs down: new ones, changed triggers; others are switched off.

    A job that is overdue stays so. A due time later than the trigger's next one (the trigger
    changed, or the clock was set back) is brought forward.
    """
    planned = {job.job: job for job in jobs}
    for job in planned.values():
        _ensure_row(store, project, job)
    with store.reading() as connection:
        now = store.now_ns(connection)
        wanted = [
            (row, _wanted(row, planned.get(row.job), now)) for row in rows(connection, project)
        ]
    changed = [
        (row, values)
        for row, values in wanted
        if any(getattr(row, name) != value for name, value in values.items())
    ]
    if changed:
        with store.transaction() as connection:
            for row, values in changed:  # unless another scheduler has written the row since
                unchanged = schedule.c.due_ns.is_not_distinct_from(row.due_ns)
                connection.execute(_row(project, row.job).where(unchanged).values(values))


def due(store: Store, project: str) -> list[str]:
    """Return the jobs of `project` that should run now and are not running."""
    with store.reading() as connection:
        now = store.now_ns(connection)
        due_jobs = connection.execute(
            select(schedule.c.job)
            .where(schedule.c.project == project, *_free_and_due(now))
            .order_by(schedule.c.due_ns)
        )
        return list(due_jobs.scalars())


def claim(store: Store, project: str, job: str, owner: str, seconds: float) -> Claim | None:
    """Take a job that is due; None where it isn't, or where another scheduler was quicker."""
    with store.transaction() as connection:
        now = store.now_ns(connection)
        taken = connection.execute(
            _row(project, job)
            .where(*_free_and_due(now))
            .values(
                owner=owner,
                claimed_until_ns=now + int(seconds * NANOSECONDS),
                started_ns=now,
            )
        )
        return Claim(project, job, owner, now) if taken.rowcount else None


def prolong(store: Store, held: Claim, seconds: float) -> bool:
    """Keep a claim alive; False where it ran out and another scheduler took the job."""
    with store.transaction() as connection:
        now = store.now_ns(connection)
        kept = connection.execute(
            _own(held).values(claimed_until_ns=now + int(seconds * NANOSECONDS))
        )
        return bool(kept.rowcount)


def finish(store: Store, held: Claim, ended: Ended, next_after: Next) -> bool:
    """Write how a job ended and when it is due next; False where another scheduler took it over.

    The next time counts from the start: if it passed during the run, the job is due at once.
    """
    with store.transaction() as connection:
        now = store.now_ns(connection)
        values = _outcome(now, ended) | {"claimed_until_ns": None}
        due_ns = next_after(held.started_ns)
        if ended.retry_seconds is not None:
            due_ns = min(due_ns, now + int(ended.retry_seconds * NANOSECONDS))
        kept = connection.execute(_own(held).values(**values, due_ns=due_ns))
        return bool(kept.rowcount)


def note_failure(store: Store, project: str, job: str, words: str) -> None:
    """Write down a failure that came before the job could even be claimed; it stays due."""
    with store.transaction() as connection:
        now = store.now_ns(connection)
        connection.execute(_row(project, job).values(_failure(now, words)))


def rows(connection: Connection, project: str) -> list[ScheduledJob]:
    """Return a project's jobs, by name."""
    query = select(schedule).where(schedule.c.project == project).order_by(schedule.c.job)
    return [ScheduledJob(**row._asdict()) for row in connection.execute(query)]


def _row(project: str, job: str) -> Any:
    return update(schedule).where(schedule.c.project == project, schedule.c.job == job)


def _own(held: Claim) -> Any:
    return _row(held.project, held.job).where(
        schedule.c.owner == held.owner,
        schedule.c.started_ns == held.started_ns,
        schedule.c.claimed_until_ns.is_not(None),
    )


def _free_and_due(now: int) -> tuple[Any, Any]:
    return (
        schedule.c.due_ns <= now,
        or_(schedule.c.claimed_until_ns.is_(None), schedule.c.claimed_until_ns <= now),
    )


def _wanted(row: ScheduledJob, planned: Planned | None, now: int) -> ColumnValues:
    if planned is None:
        return {"due_ns": None}
    due_ns = row.due_ns
    if due_ns is None or due_ns > now:
        at_latest = planned.next_after(now)
        changed = (row.trigger, row.timezone) != (planned.trigger, planned.timezone)
        due_ns = at_latest if due_ns is None or changed else min(due_ns, at_latest)
    return {"trigger": planned.trigger, "timezone": planned.timezone, "due_ns": due_ns}


def _outcome(now: int, ended: Ended) -> ColumnValues:
    values: ColumnValues = {"ended_ns": now, "outcome": ended.outcome, "words": ended.words}
    if ended.outcome == "failed":
        return values | _failure(now, ended.words)
    return values | ({"failures": 0} if ended.outcome in ("done", "alarm") else {})


def _failure(now: int, words: str) -> ColumnValues:
    return {"failures": schedule.c.failures + 1, "failed_ns": now, "failed_words": words}


def _ensure_row(store: Store, project: str, planned: Planned) -> None:
    with store.reading() as connection:
        if any(row.job == planned.job for row in rows(connection, project)):
            return
        now = store.now_ns(connection)
    try:
        with store.transaction() as connection:
            connection.execute(
                insert(schedule).values(
                    project=project,
                    job=planned.job,
                    trigger=planned.trigger,
                    timezone=planned.timezone,
                    due_ns=now if planned.at_once else planned.next_after(now),
                    failures=0,
                )
            )
    except IntegrityError:  # another scheduler was quicker: that is what we wanted
        return
