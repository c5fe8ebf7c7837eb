"""The jobs of a project and their triggers, as its configuration names them."""

from __future__ import annotations

from ringfence.connector.errors import ConfigError
from ringfence.connector.extras import require_extra
from ringfence.connector.store.schedule import Planned
from ringfence.jobs.config.scheduled_jobs import JOBS
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.schedule.triggers import Trigger, parse_trigger


def configured_times(settings: Settings) -> dict[str, str]:
    """Return the configured time of each job that is switched on and has something to do.

    Without `[audit] keep_days` nothing is ever pruned, so that job is left out.
    """
    times = {job: settings.schedule.time_of(job) for job in JOBS}
    if not settings.audit.keep_days:
        times.pop("prune")
    return {job: time for job, time in times.items() if time}


def parse_triggers(settings: Settings) -> dict[str, Trigger]:
    """Return the trigger of each job that is switched on; raise `ConfigError` for a wrong one.

    A job that this installation lacks the packages for is refused here, before its time has come.
    """
    zone = settings.schedule.timezone
    times = configured_times(settings)
    if not times:
        first = next(iter(JOBS.values()))
        raise ConfigError(
            found=f"[schedule] of project {settings.project!r} switches every job off",
            needed=f"a time for at least one of {', '.join(JOBS)}",
            next_step=f'write {first.name} = "{first.default_trigger}" under [schedule], '
            "then: ringfence schedule --check",
        )
    for job in times:
        if extra := JOBS[job].extra:
            require_extra(extra, f"for the job {job} of [schedule]")
    return {job: parse_trigger(time, zone, job) for job, time in times.items()}


def planned_jobs(triggers: dict[str, Trigger]) -> list[Planned]:
    """Return jobs as the store records them."""
    return [
        Planned(job, trigger.text, trigger.zone, trigger.next_after, trigger.is_interval)
        for job, trigger in triggers.items()
    ]
