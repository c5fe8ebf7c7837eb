"""A scheduler that lives long: days without it, and a folder that becomes read-only for a while."""

import subprocess
import threading
from contextlib import contextmanager

import pytest
from sqlalchemy import func, select, update

from ringfence.connector.store import tables
from ringfence.jobs.config.scheduled_jobs import JOBS
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.schedule.runner import JobRunner
from ringfence.jobs.views.status import read_status
from tests.faults.servers import can_mount
from tests.stores import sqlite

DAY_NS = 86_400 * 10**9
pytestmark = pytest.mark.long


def runner_of(workspace, **times):
    """A runner with these times; every other job is off."""
    schedule = workspace.settings.schedule.model_copy(update=dict.fromkeys(JOBS, "") | times)
    return JobRunner(
        workspace.settings.model_copy(update={"schedule": schedule}), threading.Event()
    )


def make_due(workspace, days=0):
    """Let jobs have been due for so many days, as if no scheduler had lived meanwhile."""
    with workspace.store.transaction() as connection:
        since = workspace.store.now_ns(connection) - days * DAY_NS
        connection.execute(update(tables.schedule).values(due_ns=since))


def job_row(workspace, job="score"):
    status = read_status(workspace.store, workspace.project)
    return next(row for row in status.schedule if row["job"] == job)


def sets_per_node(workspace):
    """How many predictions there are, and how many nodes have more than one."""
    prediction = tables.prediction
    with workspace.store.reading() as connection:
        each = (
            select(func.count().label("many"))
            .where(prediction.c.project == workspace.project)
            .group_by(prediction.c.node_key)
            .subquery()
        )
        many = connection.execute(select(each.c.many)).scalars().all()
    return sum(many), sum(count > 1 for count in many)


def in_graph(workspace):
    """How many nodes carry a set, and how many relationships those are."""
    query = (
        "MATCH (n:Account)-[r:EVALUATED]->() RETURN count(DISTINCT n) AS nodes, count(r) AS sets"
    )
    (row,) = workspace.graph.read(query)
    return row["nodes"], row["sets"]


@sqlite
def test_days_without_a_scheduler_are_made_up_by_one_run(trained):
    """Three days were missed: one run takes all that came, and the next time lies ahead."""
    workspace = trained.workspace
    runner = runner_of(workspace, score="0 3 * * *")
    assert runner.poll() == []  # planned for the next night
    make_due(workspace)
    runner.run_if_due("score")
    first, _ = sets_per_node(workspace)
    for batch in trained.later:
        trained.arrive(batch)
    make_due(workspace, days=3)
    restarted = runner_of(workspace, score="0 3 * * *")
    assert restarted.poll() == ["score"]
    restarted.run_if_due("score")
    assert restarted.poll() == []
    arrived = sum(len(batch.nodes) for batch in trained.later)
    assert sets_per_node(workspace) == (first + arrived, 0)
    assert in_graph(workspace) == (first + arrived, first + arrived)
    row = job_row(workspace)
    assert (row["outcome"], row["state"]) == ("done", "waiting")
    with workspace.store.reading() as connection:
        due = connection.execute(select(tables.schedule.c.due_ns)).scalar_one()
        assert due > workspace.store.now_ns(connection)
    assert run_verification(workspace).problems == ()


@contextmanager
def read_only(folder):
    """A folder in which nothing can be written while the block runs; needs root."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@sqlite
@pytest.mark.parametrize("what", ["mirror and models", "the audit store too"])
def test_a_folder_that_is_read_only_for_a_while_costs_a_retry_and_no_node(trained, tmp_path, what):
    if not can_mount(tmp_path / "mounts"):
        pytest.skip("mounting needs root")
    workspace = trained.workspace
    runner = runner_of(workspace, score="every 1 seconds")
    assert runner.poll() == ["score"]
    runner.run_if_due("score")
    first, _ = sets_per_node(workspace)
    trained.arrive(trained.later[0])
    folder = workspace.settings.engine.folder if what == "mirror and models" else tmp_path
    workspace.store.close()
    with read_only(folder):
        runner.run_if_due("score")
        if what == "mirror and models":
            words = job_row(workspace)["words"]
            workspace.store.close()
            assert "Read-only file system" in words
        else:
            words = runner.unnoted["score"]
            assert "a reachable database that this user may write" in words
        assert "please report it" not in words
    make_due(workspace)
    assert runner.poll() == ["score"]
    runner.run_if_due("score")
    assert job_row(workspace)["outcome"] == "done"
    arrived = len(trained.later[0].nodes)
    assert sets_per_node(workspace) == (first + arrived, 0)
    assert in_graph(workspace) == (first + arrived, first + arrived)
    assert run_verification(workspace).problems == ()
