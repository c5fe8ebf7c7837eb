"""A scheduler in a process of its own, for the tests of `ringfence schedule`."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from sqlalchemy import update

from ringfence.connector.store import schedule, tables
from ringfence.jobs.config.scheduled_jobs import JOBS
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.schedule.plan import parse_triggers, planned_jobs
from tests.patience import PATIENCE_SECONDS

FAR = "0 0 1 1 *"
MAIN = "from ringfence.jobs.cli.app import main; main()"

AT_A_FAULT_POINT = """
import os, signal, time
from pathlib import Path
from ringfence.connector import fault_points
marker = Path(os.environ.get("RINGFENCE_TEST_MARKER", ""))
def wait_until_told():
    while not Path(str(marker) + ".go").exists():
        time.sleep(0.05)
def reach(name):
    if name == {place!r} and {unless}:
        {deed}
fault_points.reach = reach
"""


def at_a_fault_point(place, deed, *, once=False):
    """Code that does something at a fault point; `once`: where RINGFENCE_TEST_MARKER is missing.

    `wait_until_told()` waits for a file named like the marker, with `.go` behind it.
    """
    unless, first = ("not marker.exists()", "marker.touch(); ") if once else ("True", "")
    return AT_A_FAULT_POINT.format(place=place, unless=unless, deed=first + deed) + MAIN


def env(settings, **more):
    """The environment of a scheduler for `settings`; every job is off but for `more`."""
    variables = {
        "RINGFENCE_NEO4J_USER": settings.neo4j.user,
        "RINGFENCE_NEO4J_PASSWORD": settings.neo4j.password.get_secret_value(),
        "RINGFENCE_AUDIT_URL": settings.audit.url,
        "RINGFENCE_ENGINE_WRITE_ROWS": "20",
        "RINGFENCE_SCHEDULE_TICK_SECONDS": "0.2",
        "RINGFENCE_SCHEDULE_RETRY_SECONDS": "0.5",
    } | {f"RINGFENCE_SCHEDULE_{job.upper()}": "" for job in JOBS}
    if settings.seed_key is not None:
        variables["RINGFENCE_SEED_KEY"] = settings.seed_key.get_secret_value()
    if settings.audit.password is not None:
        variables["RINGFENCE_AUDIT_PASSWORD"] = settings.audit.password.get_secret_value()
    return variables | more


@contextmanager
def scheduler(folder, environment, code=MAIN, *arguments):
    """A scheduler in a process of its own; whatever happens, it is gone afterwards."""
    log = folder / f"scheduler-{time.monotonic_ns()}.log"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RINGFENCE_")}
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "schedule", "--config", "ringfence.toml", *arguments],
            cwd=folder,
            env=clean | {"OMP_NUM_THREADS": "1"} | environment,
            stderr=output,
            stdout=output,
        )
    process.log = log
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def eventually(what, process=None):
    """Wait until `what()` is true; a process that ended before is shown with its log."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := what()):
        if process is not None and process.poll() is not None:
            pytest.fail(f"exit code {process.returncode}:\n{process.log.read_text()}")
        told = process.log.read_text() if process else ""
        assert time.monotonic() < deadline, f"it did not happen\n{told}"
        time.sleep(0.05)
    return value


def ends(process, number=None):
    """Send a signal and return the exit code."""
    if number is not None:
        process.send_signal(number)
    return process.wait(PATIENCE_SECONDS)


def rows(settings):
    with open_audit(settings) as store, store.reading() as connection:
        return {row.job: row for row in schedule.rows(connection, settings.project)}


def make_overdue(settings, job):
    with open_audit(settings) as store, store.transaction() as connection:
        connection.execute(
            update(tables.schedule)
            .where(tables.schedule.c.job == job)
            .values(due_ns=store.now_ns(connection) - 1, outcome=None)
        )


def end_leases(settings):
    """End what a process that died or was frozen holds, as the passing of time would."""
    with open_audit(settings) as store, store.transaction() as connection:
        connection.execute(update(tables.lease).values(expires_ns=0))
        held = tables.schedule.c.claimed_until_ns
        connection.execute(update(tables.schedule).where(held > 0).values(claimed_until_ns=0))


def plan(settings, **times):
    """Write a schedule down as an earlier scheduler would have."""
    wanted = settings.model_copy(
        update={"schedule": settings.schedule.model_copy(update=dict.fromkeys(JOBS, "") | times)}
    )
    with open_audit(settings) as store:
        schedule.plan(store, settings.project, planned_jobs(parse_triggers(wanted)))


def count(log, event):
    return sum(f" {event} " in line for line in log.read_text().splitlines())
