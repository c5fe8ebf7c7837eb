"""One project's runner in this process: failures, leases, defects, what status shows."""

import logging
import threading

import pytest
from sqlalchemy import update

from ringfence.connector.store import schedule, tables
from ringfence.jobs.schedule import job_functions, logs
from ringfence.jobs.schedule.runner import JobRunner
from ringfence.jobs.telemetry.log_lines import TextLine
from ringfence.jobs.views.status import read_status
from tests.stores import sqlite


@pytest.fixture
def runner(workspace):
    times = {
        "score": "every 10 minutes",
        "audit": "every 10 minutes",
        "reconcile": "",
        "verify": "",
        "verify_quick": "",
    }
    settings = workspace.settings.model_copy(
        update={"schedule": workspace.settings.schedule.model_copy(update=times)}
    )
    return JobRunner(settings, threading.Event())


@pytest.fixture
def lines(monkeypatch):
    """The scheduler's log, line by line."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(self.format(record))

    keep = Keep()
    keep.setFormatter(TextLine())
    monkeypatch.setattr(logs.logger, "handlers", [keep])
    logs.logger.setLevel(logging.INFO)
    return found


def shown(workspace, job):
    status = read_status(workspace.store, workspace.project)
    return next(row for row in status.schedule if row["job"] == job)


def overdue(workspace):
    with workspace.store.transaction() as connection:
        connection.execute(update(tables.schedule).values(due_ns=1))


def test_an_overdue_job_runs_once_and_status_shows_last_and_next(runner, workspace):
    assert sorted(runner.poll()) == ["audit", "score"]
    assert shown(workspace, "audit")["state"] == "overdue"
    runner.run_if_due("audit")
    runner.run_if_due("audit")
    assert runner.poll() == ["score"]
    row = shown(workspace, "audit")
    assert (row["outcome"], row["words"]) == ("done", "0 newly known; no runs yet")
    assert row["state"] == "waiting"
    assert row["started"] < row["next"]


@sqlite
def test_a_missing_model_is_said_in_one_line_with_its_three_parts(runner, workspace, lines):
    runner.poll()
    runner.run_if_due("score")
    assert "no trained model" in lines[-1]
    assert "next: ringfence train" in lines[-1]
    assert "\n" not in lines[-1]
    assert shown(workspace, "score")["failures_in_a_row"] == 1
    assert runner.poll() == ["audit"]  # time alone doesn't heal it: it waits for its next time


@sqlite
def test_another_process_at_work_is_harmless_and_the_job_stays_due(runner, workspace, lines):
    runner.poll()
    with workspace.writer():
        runner.run_if_due("audit")
    row = shown(workspace, "audit")
    assert (row["outcome"], row["failures_in_a_row"]) == ("held", 0)
    assert "is working on project" in lines[-1]
    overdue(workspace)
    runner.run_if_due("audit")
    assert shown(workspace, "audit")["outcome"] == "done"


@sqlite
def test_a_defect_is_told_by_its_place_and_never_by_its_message(
    runner, workspace, lines, monkeypatch
):
    def defect(_workspace, _progress):
        raise KeyError("a feature's value")

    runner.poll()
    monkeypatch.setattr(job_functions, "audit", defect)
    with pytest.raises(KeyError) as caught:
        runner.run_if_due("audit")
    runner.close_failed("audit", caught.value)
    assert "KeyError at test_runner.py:" in lines[-1]
    assert "feature" not in "".join(lines)
    assert shown(workspace, "audit")["outcome"] == "failed"
    assert not runner.busy


@sqlite
def test_an_end_that_could_not_be_written_is_written_by_the_next_poll(
    runner, workspace, monkeypatch, tmp_path
):
    database = tmp_path / "ringfence.db"

    def vanish(_workspace, _progress):
        database.rename(tmp_path / "away.db")
        return schedule.Ended("done", "worked without a store at its end")

    runner.poll()
    monkeypatch.setattr(job_functions, "audit", vanish)
    workspace.store.close()
    runner.run_if_due("audit")
    assert runner.poll() == []
    (tmp_path / "away.db").rename(database)
    assert runner.poll() == ["score"]
    assert shown(workspace, "audit")["words"] == "worked without a store at its end"


@sqlite
def test_a_runner_that_is_stopping_starts_nothing(runner):
    runner.poll()
    runner.stopping.set()
    assert runner.poll() == []
    runner.run_if_due("audit")
    assert not runner.busy
