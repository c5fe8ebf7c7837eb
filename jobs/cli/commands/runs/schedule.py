"""`ringfence schedule`: run jobs at their times until the process is asked to end."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringfence.jobs.cli.console import print_report, table
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import Configs, EnvironmentFiles

if TYPE_CHECKING:
    from ringfence.jobs.config.settings import Settings

TIMES_SHOWN = 3

Check = Annotated[bool, typer.Option("--check", help="Show the next times of each job and end.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Log one JSON object per line; with --check, print JSON.")
]


def schedule(
    config: Configs = None,
    env_file: EnvironmentFiles = None,
    check: Check = False,
    as_json: AsJson = False,
) -> None:
    """Run score, audit, reconcile, verify, verify_quick, prune, report, retrain until SIGTERM.

    Exit 3: the scheduler is dead, start it again.
    """
    from ringfence.jobs.telemetry.log_lines import configure_logging

    projects = _load(config or (), env_file or ())
    if check:
        plan = [row for settings in projects for row in _next_times(settings)]
        print_report(plan, as_json, print_plan)
        return
    configure_logging(as_json)
    code, busy = _run(projects, _sources(config or (), env_file or ()))
    if busy:  # a thread that is left in the middle of its work would keep the process alive
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise typer.Exit(code)


def _load(files: Sequence[Path], environment_files: Sequence[Path]) -> list[Settings]:
    from ringfence.connector.errors import ConfigError
    from ringfence.jobs.config.sources.projects import load_projects

    projects = load_projects(files, environment_files)
    names = [(settings.audit.url, settings.project) for settings in projects]
    for _, project in {name for name in names if names.count(name) > 1}:
        raise ConfigError(
            found=f"two of the files are about project {project!r} in the same audit store",
            needed="one file per project",
            next_step=f"leave out the --config of one of the two files about {project!r}",
        )
    return projects


def _sources(
    files: Sequence[Path], environment_files: Sequence[Path]
) -> list[tuple[Path, Mapping[str, str]]]:
    """Return the file and the environment of each project, which a saved file is read with."""
    from ringfence.jobs.config.load import DEFAULT_FILE
    from ringfence.jobs.config.sources.projects import environments_of

    usual = Path(os.environ.get("RINGFENCE_CONFIG", DEFAULT_FILE))
    return list(zip(files or [usual], environments_of(files, environment_files), strict=True))


def _run(
    projects: Sequence[Settings], sources: Sequence[tuple[Path, Mapping[str, str]]]
) -> tuple[int, bool]:
    """Run until asked to end; return the exit code and whether a thread is still at work."""
    import logging
    import threading

    from ringfence.connector.neo4j import embedded
    from ringfence.jobs.schedule.config_file import ConfigFile
    from ringfence.jobs.schedule.logs import log_event
    from ringfence.jobs.schedule.loop import SchedulerLoop
    from ringfence.jobs.schedule.runner import JobRunner

    stopping = threading.Event()
    runners = [
        JobRunner(settings, stopping, ConfigFile(file, settings, environment))
        for settings, (file, environment) in zip(projects, sources, strict=True)
    ]
    with ExitStack() as stack:
        for settings in projects:
            if settings.neo4j.uri == "embedded":
                log_event(logging.INFO, "starting Neo4j", project=settings.project)
                stack.enter_context(embedded.running(settings.engine.folder / "neo4j"))
        for runner in runners:
            times = {job: trigger.text for job, trigger in runner.triggers.items()}
            log_event(logging.INFO, "scheduled", project=runner.project, **times)
        loop = SchedulerLoop(runners, stopping)
        if dead := loop.run():
            text = f"{dead}; ending, so that the supervisor starts anew; nothing is lost"
            log_event(logging.CRITICAL, "watchdog", words=text)
            stack.pop_all()  # an embedded server ends by itself when this process has
            return ExitCode.SCHEDULER_DEAD, True
        log_event(logging.INFO, "stopped")
        return 0, loop.busy


def print_plan(plan: Sequence[dict[str, Any]]) -> None:
    """Show the next times of each job."""
    rows = [(row["project"], row["job"], row["trigger"], ", ".join(row["next"])) for row in plan]
    table("Next times", ("project", "job", "trigger", "next"), rows)


def _next_times(settings: Settings) -> list[dict[str, Any]]:
    import time
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from ringfence.jobs.schedule.plan import parse_triggers

    rows = []
    for job, trigger in parse_triggers(settings).items():
        moment, times = time.time_ns(), []
        for _ in range(TIMES_SHOWN):
            moment = trigger.next_after(moment)
            local = datetime.fromtimestamp(moment // 10**9, ZoneInfo(trigger.zone))
            times.append(local.isoformat(sep=" "))
        rows.append(
            {"project": settings.project, "job": job, "trigger": trigger.text, "next": times}
        )
    return rows
