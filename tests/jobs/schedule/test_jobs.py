"""The registry of jobs, and a scheduled process over its life: every job, and a freeze."""

import signal
from pathlib import Path

import psutil
import pytest
from sqlalchemy import func, select

from ringfence.connector.store import tables
from ringfence.jobs.config.reference import reference
from ringfence.jobs.config.scheduled_jobs import JOBS
from ringfence.jobs.config.settings import ScheduleSettings
from ringfence.jobs.schedule import job_functions
from ringfence.jobs.schedule.triggers import parse_trigger
from tests.patience import PATIENCE_SECONDS
from tests.schedulers import (
    FAR,
    at_a_fault_point,
    count,
    end_leases,
    ends,
    env,
    eventually,
    make_overdue,
    plan,
    rows,
    scheduler,
)
from tests.stores import postgresql, sqlite

WIPE = "MATCH (n:Account)-[:EVALUATED]->() WITH n LIMIT 5 MATCH (n)-[r:MAY_BE]->() DELETE r"
SETS = "MATCH ()-[r:MAY_BE]->() RETURN count(r) AS n"

FREEZES = f"""
import os, time
from pathlib import Path
from types import SimpleNamespace
from ringfence.jobs.schedule import loop
woken = Path(os.environ["RINGFENCE_TEST_MARKER"] + ".woken")
def monotonic():
    return time.monotonic() + 2 * {PATIENCE_SECONDS} * woken.exists()
loop.time = SimpleNamespace(sleep=time.sleep, monotonic=monotonic)
""" + at_a_fault_point("lease taken", "os.kill(os.getpid(), signal.SIGSTOP)", once=True)
"""Frozen by a signal; to the watchdog it lasts twice as long as a tick may take."""


def test_every_job_has_a_function_a_setting_a_line_in_the_reference_and_one_in_the_guide():
    guide = (Path(__file__).resolve().parents[3] / "docs/scheduling.md").read_text("utf-8")
    for job in JOBS.values():
        assert callable(getattr(job_functions, job.name))
        assert ScheduleSettings().time_of(job.name) == job.default_trigger
        assert f"| `{job.name}` | text |" in reference()
        assert f"\n{job.name} = " in guide
        if job.default_trigger:
            parse_trigger(job.default_trigger, "UTC", job.name)


@sqlite
def test_one_process_scores_audits_repairs_and_reports(trained, tmp_path):
    workspace, settings = trained.workspace, trained.workspace.settings
    plan(settings, **dict.fromkeys(JOBS, FAR))
    environment = env(settings, **{f"RINGFENCE_SCHEDULE_{job.upper()}": FAR for job in JOBS})

    def run(job, process):
        make_overdue(settings, job)
        eventually(lambda: rows(settings)[job].outcome is not None, process)
        assert rows(settings)[job].outcome == "done", rows(settings)[job].words

    with scheduler(tmp_path, environment) as process:
        eventually(lambda: count(process.log, "scheduled"), process)
        run("score", process)
        written = workspace.graph.read(SETS)[0]["n"]
        workspace.graph.run(WIPE)
        assert workspace.graph.read(SETS)[0]["n"] < written
        run("reconcile", process)
        assert workspace.graph.read(SETS)[0]["n"] == written
        assert rows(settings)["reconcile"].words == "repaired what differed"
        run("reconcile", process)
        assert rows(settings)["reconcile"].words == "nothing to repair"
        run("audit", process)
        run("verify", process)
        run("verify_quick", process)
        run("report", process)
        assert ends(process, signal.SIGTERM) == 0
    (page,) = (settings.engine.folder / "report").glob("*.html")
    assert "coverage" in page.read_text(encoding="utf-8").lower()
    with workspace.store.transaction() as connection:
        connection.execute(tables.lease.update().values(watermark_ns=7))
    ended = job_functions.verify(workspace, lambda *_: None)
    assert ended.outcome == "failed"
    assert ended.words.startswith("1 problem: lease: watermark_ns is 7, but the last run left")
    assert job_functions.verify_quick(workspace, lambda *_: None) == ended


@pytest.mark.long
@postgresql
def test_a_scheduler_frozen_in_the_middle_of_a_run_wakes_up_harmless(trained, tmp_path):
    """Its claim and its lease are over when it wakes; another one has done the work."""
    workspace, settings = trained.workspace, trained.workspace.settings
    plan(settings, score=FAR)
    environment = env(
        settings,
        RINGFENCE_SCHEDULE_SCORE=FAR,
        RINGFENCE_SCHEDULE_STALE_SECONDS=str(PATIENCE_SECONDS),
        RINGFENCE_TEST_MARKER=str(tmp_path / "frozen"),
    )
    with scheduler(tmp_path, environment, FREEZES) as frozen:
        eventually(lambda: count(frozen.log, "scheduled"), frozen)
        make_overdue(settings, "score")
        eventually(lambda: psutil.Process(frozen.pid).status() == psutil.STATUS_STOPPED, frozen)
        end_leases(settings)
        with scheduler(tmp_path, environment) as other:
            eventually(lambda: count(other.log, "done"), other)
            assert ends(other, signal.SIGTERM) == 0
        (tmp_path / "frozen.woken").touch()  # its watchdog must not take the freeze for a death
        frozen.send_signal(signal.SIGCONT)
        events = ("taken over", "held", "done")
        eventually(lambda: any(count(frozen.log, event) for event in events), frozen)
        make_overdue(settings, "score")
        eventually(lambda: rows(settings)["score"].outcome == "done", frozen)
        assert ends(frozen, signal.SIGTERM) == 0
    due = int((~trained.labelled[trained.first.nodes]).sum())
    in_graph = workspace.graph.read("MATCH ()-[e:EVALUATED]->() RETURN count(e) AS n")[0]["n"]
    with workspace.store.reading() as connection:
        stored = connection.execute(select(func.count()).select_from(tables.prediction)).scalar()
        runs = connection.execute(select(tables.run.c.state)).scalars().all()
    assert (in_graph, stored, runs) == (due, due, ["applied"])
