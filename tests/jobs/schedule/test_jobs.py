"""The registry of jobs, and a scheduled process over its life: every job, and a freeze."""

import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import func, select

from ringfence.connector.store import tables
from ringfence.jobs.config.reference import reference
from ringfence.jobs.config.settings import ScheduleSettings
from ringfence.jobs.schedule.jobs import JOBS
from ringfence.jobs.schedule.triggers import parse_trigger
from ringfence.jobs.training.train import run_training
from tests.schedulers import (
    FAR,
    at_a_fault_point,
    count,
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

SLOW = at_a_fault_point("lease taken", "time.sleep(6)")


def test_every_job_has_a_function_a_setting_a_line_in_the_reference_and_one_in_the_guide():
    guide = (Path(__file__).resolve().parents[3] / "docs/scheduling.md").read_text("utf-8")
    for job in JOBS.values():
        assert callable(job.load_function())
        assert ScheduleSettings().time_of(job.name) == job.default_trigger
        assert f"| `{job.name}` | text |" in reference()
        assert f"\n{job.name} = " in guide
        if job.default_trigger:
            parse_trigger(job.default_trigger, "UTC", job.name)


@sqlite
def test_one_process_scores_audits_repairs_and_reports(grown, tmp_path):
    workspace, settings = grown.workspace, grown.workspace.settings
    run_training(workspace)
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
        run("report", process)
        assert ends(process, signal.SIGTERM) == 0
    (page,) = (settings.engine.folder / "report").glob("*.html")
    assert "coverage" in page.read_text(encoding="utf-8").lower()
    with workspace.store.transaction() as connection:
        connection.execute(tables.lease.update().values(watermark_ns=7))
    ended = JOBS["verify"].load_function()(workspace, lambda *_: None)
    assert ended.outcome == "failed"
    assert ended.words.startswith("1 problem: lease: watermark_ns is 7, but the last run left")


@pytest.mark.long
@postgresql
def test_a_scheduler_frozen_in_the_middle_of_a_run_wakes_up_harmless(grown, tmp_path):
    """Its claim and its lease are over when it wakes; another one has done the work."""
    workspace, settings = grown.workspace, grown.workspace.settings
    run_training(workspace)
    plan(settings, score=FAR)
    environment = env(settings, RINGFENCE_SCHEDULE_SCORE=FAR, RINGFENCE_SCHEDULE_STALE_SECONDS="4")
    with scheduler(tmp_path, environment, SLOW) as frozen:
        eventually(lambda: count(frozen.log, "scheduled"), frozen)
        make_overdue(settings, "score")
        eventually(lambda: count(frozen.log, "started"), frozen)
        time.sleep(1)
        frozen.send_signal(signal.SIGSTOP)
        with scheduler(tmp_path, environment) as other:
            eventually(lambda: count(other.log, "done"), other)
            frozen.send_signal(signal.SIGCONT)
            events = ("taken over", "held", "done")
            eventually(lambda: any(count(frozen.log, event) for event in events), frozen)
            # longer than stale_seconds: its watchdog did not take the sleep for a death
            time.sleep(5)
            assert ends(frozen, signal.SIGTERM) == ends(other, signal.SIGTERM) == 0
    due = int((~grown.labelled[grown.first.nodes]).sum())
    in_graph = workspace.graph.read("MATCH ()-[e:EVALUATED]->() RETURN count(e) AS n")[0]["n"]
    with workspace.store.reading() as connection:
        stored = connection.execute(select(func.count()).select_from(tables.prediction)).scalar()
        runs = connection.execute(select(tables.run.c.state)).scalars().all()
    assert (in_graph, stored, runs) == (due, due, ["applied"])
