"""One project's desk in this process: failures in words, leases, defects, what status shows."""

import logging
import threading

import pytest
from sqlalchemy import update

from ringfence.connector import schedules, tables
from ringfence.jobs.schedule import desk as desks
from ringfence.jobs.schedule import logs
from ringfence.jobs.schedule.desk import Desk
from ringfence.jobs.status import read_status

sqlite = pytest.mark.parametrize("sql_url", ["sqlite"], indirect=True)


@pytest.fixture
def desk(workspace):
    times = {"score": "every 10 minutes", "audit": "every 10 minutes", "reconcile": ""}
    settings = workspace.settings.model_copy(
        update={"schedule": workspace.settings.schedule.model_copy(update=times)}
    )
    return Desk(settings, threading.Event())


@pytest.fixture
def lines(monkeypatch):
    """The scheduler's log, line by line."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(self.format(record))

    keep = Keep()
    keep.setFormatter(logs.TextLine())
    monkeypatch.setattr(logs.logger, "handlers", [keep])
    logs.logger.setLevel(logging.INFO)
    return found


def shown(workspace, job):
    status = read_status(workspace.store, workspace.project)
    return next(row for row in status.schedule if row["job"] == job)


def overdue(workspace):
    with workspace.store.transaction() as connection:
        connection.execute(update(tables.schedule).values(due_ns=1))


def test_an_overdue_job_runs_once_and_status_shows_last_and_next(desk, workspace):
    assert sorted(desk.look()) == ["audit", "score"]
    assert shown(workspace, "audit")["state"] == "overdue"
    desk.ring("audit")
    desk.ring("audit")
    assert desk.look() == ["score"]
    row = shown(workspace, "audit")
    assert (row["outcome"], row["words"]) == ("done", "0 newly known; no runs yet")
    assert row["state"] == "waiting"
    assert row["started"] < row["next"]


@sqlite
def test_a_missing_model_is_said_in_one_line_with_its_three_parts(desk, workspace, lines):
    desk.look()
    desk.ring("score")
    assert "no trained model" in lines[-1]
    assert "next: ringfence train" in lines[-1]
    assert "\n" not in lines[-1]
    assert shown(workspace, "score")["failures_in_a_row"] == 1
    assert desk.look() == ["audit"]  # time alone doesn't heal it: it waits for its next ring


@sqlite
def test_another_process_at_work_is_harmless_and_the_job_stays_due(desk, workspace, lines):
    desk.look()
    with workspace.writer():
        desk.ring("audit")
    row = shown(workspace, "audit")
    assert (row["outcome"], row["failures_in_a_row"]) == ("held", 0)
    assert "is working on project" in lines[-1]
    overdue(workspace)
    desk.ring("audit")
    assert shown(workspace, "audit")["outcome"] == "done"


@sqlite
def test_a_defect_is_told_by_its_place_and_never_by_its_message(
    desk, workspace, lines, monkeypatch
):
    def defect(_workspace, _progress):
        raise KeyError("a feature's value")

    desk.look()
    monkeypatch.setitem(desks.JOBS, "audit", defect)
    with pytest.raises(KeyError) as caught:
        desk.ring("audit")
    desk.broken("audit", caught.value)
    assert "KeyError at test_schedule_desk.py:" in lines[-1]
    assert "feature" not in "".join(lines)
    assert shown(workspace, "audit")["outcome"] == "failed"
    assert not desk.busy


@sqlite
def test_an_end_that_could_not_be_written_is_written_by_the_next_look(
    desk, workspace, monkeypatch, tmp_path
):
    database = tmp_path / "ringfence.db"

    def vanish(_workspace, _progress):
        database.rename(tmp_path / "away.db")
        return schedules.Ended("done", "worked without a store at its end")

    desk.look()
    monkeypatch.setitem(desks.JOBS, "audit", vanish)
    workspace.store.close()
    desk.ring("audit")
    assert desk.look() == []
    (tmp_path / "away.db").rename(database)
    assert desk.look() == ["score"]
    assert shown(workspace, "audit")["words"] == "worked without a store at its end"


@sqlite
def test_a_desk_that_is_stopping_starts_nothing(desk):
    desk.look()
    desk.stopping.set()
    assert desk.look() == []
    desk.ring("audit")
    assert not desk.busy
