"""Whether the times under `[schedule]` can be read."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.jobs.config.settings import Settings
from ringfence.jobs.schedule.plan import configured_times, parse_triggers
from ringfence.jobs.setup.finding import Finding, attempt


def check_schedule(settings: Settings) -> Iterator[Finding]:
    """Read every trigger that is switched on."""
    times = [f"{job} {time!r}" for job, time in configured_times(settings).items()]
    if times:
        text = f"the schedule can be read: {', '.join(times)}"
        yield attempt(text, lambda: parse_triggers(settings))
    else:
        yield Finding("ok", "nothing is scheduled")
