"""The jobs of a project and their triggers, as its configuration names them."""

from __future__ import annotations

from ringfence.connector.errors import ConfigError
from ringfence.connector.schedules import Planned
from ringfence.jobs.schedule.triggers import Trigger, parse
from ringfence.jobs.settings import Settings

NAMES = ("score", "audit", "reconcile", "report")


def switched_on(settings: Settings) -> dict[str, str]:
    """Return the configured time of each job that has one."""
    texts = {job: str(getattr(settings.schedule, job)).strip() for job in NAMES}
    return {job: text for job, text in texts.items() if text}


def triggers(settings: Settings) -> dict[str, Trigger]:
    """Return the trigger of each job that is switched on; raise `ConfigError` for a wrong one."""
    zone = settings.schedule.timezone
    found = {job: parse(text, zone, job) for job, text in switched_on(settings).items()}
    if not found:
        raise ConfigError(
            found=f"[schedule] of project {settings.project!r} switches every job off",
            needed=f"a time for at least one of {', '.join(NAMES)}",
        )
    return found


def planned(job: str, trigger: Trigger) -> Planned:
    """Return a job as the store writes it down."""
    return Planned(job, trigger.text, trigger.zone, trigger.next_after, trigger.is_interval)
