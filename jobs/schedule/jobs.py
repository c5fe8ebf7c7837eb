"""The registry of jobs that can be scheduled.

A new job is a function in `job_functions` and an entry in `JOBS`. The settings of `[schedule]` and
their page, the plan, the runner, `ringfence schedule --check` and `ringfence doctor` follow from
it. The function is found by its name and not by an import statement, so that reading the
configuration does not bring the code of every job, and torch with it.

>>> list(JOBS)
['score', 'audit', 'reconcile', 'verify', 'prune', 'report', 'retrain']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ringfence.connector.neo4j.read.sync import Progress
    from ringfence.connector.store.schedule import Ended
    from ringfence.jobs.project.workspace import Workspace

    JobFunction = Callable[[Workspace, Progress], Ended]

FUNCTIONS_MODULE = "ringfence.jobs.schedule.job_functions"


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

    def load_function(self) -> JobFunction:
        """Import and return what the job does."""
        return cast("JobFunction", getattr(import_module(FUNCTIONS_MODULE), self.name))


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
        ),
    )
}
