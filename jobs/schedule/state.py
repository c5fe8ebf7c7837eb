"""What `ringfence status` says about scheduled jobs, read from the audit store alone."""

from __future__ import annotations

from typing import Any

from ringfence.connector.store import schedule
from ringfence.connector.store.engine import Store
from ringfence.connector.times import format_time


def read_schedule(store: Store, project: str) -> tuple[dict[str, Any], ...]:
    """Return a row per job: trigger, last start and end, outcome, next time, last failure."""
    with store.reading() as connection:
        now = store.now_ns(connection)
        return tuple(
            {
                "job": row.job,
                "trigger": f"{row.trigger} ({row.timezone})",
                "state": _state(row, now),
                "started": format_time(row.started_ns),
                "ended": format_time(row.ended_ns),
                "outcome": row.outcome,
                "words": row.words,
                "next": format_time(row.due_ns) if row.due_ns is not None else "switched off",
                "failures_in_a_row": row.failures,
                "last_failure": format_time(row.failed_ns),
                "last_failure_words": row.failed_words,
            }
            for row in schedule.rows(connection, project)
        )


def _state(row: Any, now: int) -> str:
    if row.claimed_until_ns is not None:
        return f"running at {row.owner}" if row.claimed_until_ns > now else "interrupted"
    if row.due_ns is None:
        return "off"
    return "overdue" if row.due_ns <= now else "waiting"
