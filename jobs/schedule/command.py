"""`ringfence schedule` on the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ringfence.jobs.settings import Settings

DEAD = 3
RINGS_SHOWN = 3

Configs = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", help="A project's file; several: several projects at once."),
]
Check = Annotated[bool, typer.Option("--check", help="Show the next times of each job and end.")]
AsJson = Annotated[bool, typer.Option("--json", help="Log (or show) JSON, one object per line.")]


def schedule(config: Configs = None, check: Check = False, as_json: AsJson = False) -> None:
    """Run score, audit, reconcile and report at their times, until SIGTERM (exit 3: bell dead)."""
    from ringfence.jobs.schedule.logs import configure

    projects = _load(config)
    if check:
        _show_plan(projects, as_json)
        return
    configure(as_json)
    code, busy = _run(projects)
    if busy:  # a thread that is left in the middle of its work would keep the process alive
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise typer.Exit(code)


def _load(files: Sequence[Path] | None) -> list[Settings]:
    from ringfence.connector.errors import ConfigError
    from ringfence.jobs.config import load

    projects = [load(file) for file in files] if files else [load()]
    names = [(one.audit.url, one.project) for one in projects]
    for twice in {name for name in names if names.count(name) > 1}:
        raise ConfigError(
            found=f"two of the files are about project {twice[1]!r} in the same audit store",
            needed="one file per project",
        )
    return projects


def _run(projects: Sequence[Settings]) -> tuple[int, bool]:
    """Ring until asked to end; return the exit code and whether a thread is still at work."""
    import logging
    import threading

    from ringfence.connector import embedded
    from ringfence.jobs.schedule.bell import Bell
    from ringfence.jobs.schedule.desk import Desk
    from ringfence.jobs.schedule.logs import event

    stopping = threading.Event()
    desks = [Desk(settings, stopping) for settings in projects]
    with ExitStack() as stack:
        for settings in projects:
            if settings.neo4j.uri == "embedded":
                event(logging.INFO, "starting Neo4j", project=settings.project)
                stack.enter_context(embedded.running(settings.engine.folder / "neo4j"))
        for desk in desks:
            jobs = {job: trigger.text for job, trigger in desk.triggers.items()}
            event(logging.INFO, "scheduled", project=desk.project, **jobs)
        bell = Bell(desks, stopping)
        if dead := bell.run():
            words = f"{dead}; ending, so that the supervisor starts anew; nothing is lost"
            event(logging.CRITICAL, "watchdog", words=words)
            stack.pop_all()  # an embedded server ends by itself when this process has
            return DEAD, True
        event(logging.INFO, "stopped")
        return 0, bell.busy


def _show_plan(projects: Sequence[Settings], as_json: bool) -> None:
    from ringfence.jobs import display

    plan = [row for settings in projects for row in _plan(settings)]
    if as_json:
        display.print_json(plan)
        return
    display.table(
        "Next times",
        ("project", "job", "trigger", "next"),
        [(row["project"], row["job"], row["trigger"], ", ".join(row["next"])) for row in plan],
    )


def _plan(settings: Settings) -> list[dict[str, Any]]:
    import time
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from ringfence.jobs.schedule.planning import triggers

    rows = []
    for job, trigger in triggers(settings).items():
        moment, times = time.time_ns(), []
        for _ in range(RINGS_SHOWN):
            moment = trigger.next_after(moment)
            local = datetime.fromtimestamp(moment // 10**9, ZoneInfo(trigger.zone))
            times.append(local.isoformat(sep=" "))
        rows.append(
            {"project": settings.project, "job": job, "trigger": trigger.text, "next": times}
        )
    return rows
