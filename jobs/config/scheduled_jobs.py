"""The registry of jobs that can be scheduled.

A new job is an entry in `JOBS` and a function of the same name in `jobs.schedule.job_functions`.
The settings of `[schedule]` and their page, the plan, the runner, `ringfence schedule --check` and
`ringfence doctor` follow from it.

>>> list(JOBS)
['score', 'audit', 'reconcile', 'verify', 'verify_quick', 'prune', 'report', 'retrain']
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """A job: its name is its key under `[schedule]` and the name of its function."""

    name: str
    default_trigger: str
    """When it runs unless the configuration says otherwise; empty: never."""

    description: str
    """Meaning of its setting, for the reference page."""

    beside: bool = False
    """Whether it runs beside the other jobs of its project, which otherwise take turns."""

    extra: str = ""
    """The extra of ringfence that it needs, as pyproject.toml calls it."""


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            "score",
            "every 10 minutes",
            'When to score: a cron line like `*/10 * * * *`, "every 10 minutes", or empty.',
        ),
        Job("audit", "every hour", "When to audit coverage."),
        Job("reconcile", "30 3 * * *", "When to compare graph and SQL and repair."),
        Job("verify", "0 4 * * *", "When to check that everything on record is as it was decided."),
        Job(
            "verify_quick",
            "every hour",
            "When to compare what is on record with the audit chain by digests alone, which costs "
            "a fraction of `verify`.",
        ),
        Job(
            "prune",
            "15 5 * * *",
            "When to remove the details of runs that are older than `[audit] keep_days`; "
            "there is no such job where that is 0.",
        ),
        Job("report", "", "When to write the report."),
        Job(
            "retrain",
            "",
            "When to ask whether a new version should be trained (`[retrain]`), and to train it in "
            "a process of its own while runs go on.",
            beside=True,
            extra="train",
        ),
    )
}
