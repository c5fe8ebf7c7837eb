"""What `ringfence status` says about scheduled jobs, read from the audit store alone."""

from __future__ import annotations

from typing import Any

from ringfence.connector import schedules
from ringfence.connector.store import Store
from ringfence.connector.times import words
from ringfence.jobs.display import table


def read_schedule(store: Store, project: str) -> tuple[dict[str, Any], ...]:
    """Return a row per job: trigger, last start and end, outcome, next time, last failure."""
    with store.reading() as connection:
        now = store.now_ns(connection)
        return tuple(
            {
                "job": row.job,
                "trigger": f"{row.trigger} ({row.timezone})",
                "state": _state(row, now),
                "started": words(row.started_ns),
                "ended": words(row.ended_ns),
                "outcome": row.outcome,
                "words": row.words,
                "next": words(row.due_ns) if row.due_ns is not None else "switched off",
                "failures_in_a_row": row.failures,
                "last_failure": words(row.failed_ns),
                "last_failure_words": row.failed_words,
            }
            for row in schedules.rows(connection, project)
        )


def _state(row: Any, now: int) -> str:
    if row.claimed_until_ns is not None:
        return f"running at {row.owner}" if row.claimed_until_ns > now else "interrupted"
    if row.due_ns is None:
        return "off"
    return "overdue" if row.due_ns <= now else "waiting"


def show_schedule(rows: tuple[dict[str, Any], ...]) -> None:
    """Print the jobs as a table, where there are any."""
    if rows:
        names = ("job", "trigger", "state", "started", "outcome", "next", "failures_in_a_row")
        titles = [name.replace("_", " ") for name in names]
        table("Schedule", titles, [[row[name] for name in names] for row in rows])
