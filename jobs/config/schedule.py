"""`[schedule]`: when `ringfence schedule` runs what.

The keys with a time are the jobs of `jobs.config.scheduled_jobs.JOBS`: a job that is added there
has its setting, its environment variable and its line in the reference page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, create_model, model_validator

from ringfence.jobs.config.scheduled_jobs import JOBS
from ringfence.jobs.config.section import Section


class _Zone(Section):
    timezone: str = Field("UTC", description="IANA name of the zone in which cron lines are meant.")


if TYPE_CHECKING:
    _JobTimes = _Zone
else:
    _JobTimes = create_model(
        "_JobTimes",
        __base__=_Zone,
        **{
            job.name: (str, Field(job.default_trigger, description=job.description))
            for job in JOBS.values()
        },
    )


class ScheduleSettings(_JobTimes):
    """When `ringfence schedule` does what; an empty text switches a job off."""

    retry_seconds: float = Field(
        60.0,
        gt=0,
        description="How soon a job is tried again after a store or server did not answer or "
        "another process was at work; other failures wait for the job's next time.",
    )
    grace_seconds: float = Field(
        20.0,
        ge=0,
        description="How long a run may take to reach a stopping place after SIGTERM or Ctrl-C; "
        "then the process ends, and the next start finishes the run.",
    )
    tick_seconds: float = Field(
        5.0,
        gt=0,
        description="How often the scheduler shows that it is alive and asks the store which jobs "
        "are due.",
    )
    stale_seconds: float = Field(
        60.0,
        gt=0,
        description="Without a tick for so long the watchdog ends the process with exit code 3.",
    )

    @model_validator(mode="after")
    def _a_tick_fits(self) -> ScheduleSettings:
        if self.stale_seconds <= self.tick_seconds:
            raise ValueError(
                f"stale_seconds = {self.stale_seconds:g} is not above tick_seconds = "
                f"{self.tick_seconds:g}: the watchdog would end every process at once"
            )
        return self

    def time_of(self, job: str) -> str:
        """Return the configured time of a job, as written; empty: never."""
        return str(getattr(self, job)).strip()
