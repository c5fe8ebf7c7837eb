"""What a scheduled process does over its life: all four jobs, and a freeze in the middle."""

import signal
import time

from sqlalchemy import func, select

from ringfence.connector import tables
from ringfence.jobs.training import run_training
from tests.schedulers import (
    FAR,
    MAIN,
    count,
    ends,
    env,
    eventually,
    make_overdue,
    plan,
    postgresql,
    rows,
    scheduler,
    sqlite,
)

WIPE = "MATCH (n:Account)-[:EVALUATED]->() WITH n LIMIT 5 MATCH (n)-[r:MAY_BE]->() DELETE r"
SETS = "MATCH ()-[r:MAY_BE]->() RETURN count(r) AS n"

SLOW = """
import time
from ringfence.connector import checkpoints
def at(name):
    if name == "lease taken":
        time.sleep(6)
checkpoints.at = at
"""


@sqlite
def test_one_process_scores_audits_repairs_and_reports(grown, tmp_path):
    workspace, settings = grown.workspace, grown.workspace.settings
    run_training(workspace)
    jobs = ("score", "audit", "reconcile", "report")
    plan(settings, **dict.fromkeys(jobs, FAR))
    environment = env(settings, **{f"RINGFENCE_SCHEDULE_{job.upper()}": FAR for job in jobs})

    def ring(job, process):
        make_overdue(settings, job)
        eventually(lambda: rows(settings)[job].outcome is not None, process)
        assert rows(settings)[job].outcome == "done", rows(settings)[job].words

    with scheduler(tmp_path, environment) as process:
        eventually(lambda: count(process.log, "scheduled"), process)
        ring("score", process)
        written = workspace.graph.read(SETS)[0]["n"]
        workspace.graph.run(WIPE)
        assert workspace.graph.read(SETS)[0]["n"] < written
        ring("reconcile", process)
        assert workspace.graph.read(SETS)[0]["n"] == written
        assert rows(settings)["reconcile"].words == "repaired what differed"
        ring("reconcile", process)
        assert rows(settings)["reconcile"].words == "nothing to repair"
        ring("audit", process)
        ring("report", process)
        assert ends(process, signal.SIGTERM) == 0
    (page,) = (settings.engine.folder / "report").glob("*.html")
    assert "coverage" in page.read_text(encoding="utf-8").lower()


@postgresql
def test_a_scheduler_frozen_in_the_middle_of_a_run_wakes_up_harmless(grown, tmp_path):
    """Its claim and its lease are over when it wakes; another one has done the work."""
    workspace, settings = grown.workspace, grown.workspace.settings
    run_training(workspace)
    plan(settings, score=FAR)
    environment = env(settings, RINGFENCE_SCHEDULE_SCORE=FAR, RINGFENCE_SCHEDULE_STALE_SECONDS="4")
    with scheduler(tmp_path, environment, SLOW + MAIN) as frozen:
        eventually(lambda: count(frozen.log, "scheduled"), frozen)
        make_overdue(settings, "score")
        eventually(lambda: count(frozen.log, "started"), frozen)
        time.sleep(1)
        frozen.send_signal(signal.SIGSTOP)
        with scheduler(tmp_path, environment) as other:
            eventually(lambda: count(other.log, "done"), other)
            frozen.send_signal(signal.SIGCONT)
            words = ("taken over", "held", "done")
            eventually(lambda: any(count(frozen.log, word) for word in words), frozen)
            time.sleep(
                5
            )  # longer than stale_seconds: its watchdog did not take the sleep for a death
            assert ends(frozen, signal.SIGTERM) == ends(other, signal.SIGTERM) == 0
    due = int((~grown.labelled[grown.first.nodes]).sum())
    in_graph = workspace.graph.read("MATCH ()-[e:EVALUATED]->() RETURN count(e) AS n")[0]["n"]
    with workspace.store.reading() as connection:
        stored = connection.execute(select(func.count()).select_from(tables.prediction)).scalar()
        runs = connection.execute(select(tables.run.c.state)).scalars().all()
    assert (in_graph, stored, runs) == (due, due, ["applied"])
