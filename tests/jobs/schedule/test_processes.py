"""`ringfence schedule` as real processes: kills, signals, two at once, stores that vanish."""

import json
import signal
from pathlib import Path

import pytest
from sqlalchemy import func, make_url, select
from typer.testing import CliRunner

from ringfence.connector.errors import RingfenceError
from ringfence.connector.store import migrate, tables
from ringfence.connector.store.engine import open_store
from ringfence.jobs.cli.app import app
from ringfence.jobs.config.load import load
from ringfence.jobs.schedule.plan import parse_triggers
from ringfence.jobs.scoring.score import run_scoring
from tests.patience import PATIENCE_SECONDS
from tests.schedulers import (
    FAR,
    MAIN,
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
from tests.store_copies import administer
from tests.stores import postgresql, sqlite


@postgresql
def test_two_schedulers_on_one_project_run_each_overdue_job_once(workspace, tmp_path):
    settings = workspace.settings
    plan(settings, audit=FAR)
    environment = env(settings, RINGFENCE_SCHEDULE_AUDIT=FAR)
    with scheduler(tmp_path, environment) as first, scheduler(tmp_path, environment) as second:
        for process in (first, second):
            eventually(lambda p=process: count(p.log, "scheduled"), process)
        for _ in range(5):
            make_overdue(settings, "audit")
            eventually(lambda: rows(settings)["audit"].outcome == "done", first)
        assert ends(first, signal.SIGTERM) == ends(second, signal.SIGINT) == 0
    logs = [process.log.read_text() for process in (first, second)]
    assert sum(count(process.log, "started") for process in (first, second)) == 5, logs
    assert sum(count(process.log, "done") for process in (first, second)) == 5, logs
    assert settings.neo4j.password.get_secret_value() not in "".join(logs)


@pytest.mark.long
@sqlite
def test_a_run_left_half_way_by_a_kill_or_a_signal_is_finished_by_the_next_start(
    trained, tmp_path, monkeypatch
):
    """One decided run, replayed in blocks of 20: killed, then stopped, then cut, then finished."""
    workspace, settings = trained.workspace, trained.workspace.settings
    with monkeypatch.context() as broken:
        broken.setattr(
            "ringfence.connector.neo4j.write.prediction_sets.write_sets", lambda *_: 1 / 0
        )
        with pytest.raises(ZeroDivisionError):
            run_scoring(workspace)
    environment = env(settings, RINGFENCE_SCHEDULE_AUDIT="every 1 seconds")

    def state():
        with workspace.store.reading() as connection:
            return connection.execute(select(tables.run.c.state)).scalars().all()

    def half_way(deed, marker, grace):
        marked = {
            "RINGFENCE_TEST_MARKER": str(tmp_path / marker),
            "RINGFENCE_SCHEDULE_GRACE_SECONDS": grace,
        }
        return scheduler(
            tmp_path, environment | marked, at_a_fault_point("after block", deed, once=True)
        )

    with half_way("os.kill(os.getpid(), 9)", "killed", "60") as process:
        assert ends(process) == -signal.SIGKILL
    assert state() == ["decided"]
    end_leases(settings)

    with half_way("wait_until_told()", "stopped", "600") as process:
        eventually((tmp_path / "stopped").exists, process)
        process.send_signal(signal.SIGTERM)
        eventually(lambda: count(process.log, "stopping"), process)
        (tmp_path / "stopped.go").touch()
        assert ends(process) == 0
    assert state() == ["decided"]
    row = rows(settings)["audit"]
    assert (row.outcome, row.claimed_until_ns) == ("stopped", None)

    with half_way("wait_until_told()", "cut", "0.5") as process:
        eventually((tmp_path / "cut").exists, process)
        assert ends(process, signal.SIGTERM) == 0
        assert count(process.log, "cut"), process.log.read_text()
    assert state() == ["decided"]
    end_leases(settings)

    with scheduler(tmp_path, environment) as process:
        eventually(lambda: state() == ["applied"], process)
        eventually(lambda: rows(settings)["audit"].outcome == "done", process)
        assert ends(process, signal.SIGTERM) == 0
    in_graph = workspace.graph.read("MATCH ()-[e:EVALUATED]->() RETURN count(e) AS n")[0]["n"]
    with workspace.store.reading() as connection:
        stored = connection.execute(select(func.count()).select_from(tables.prediction)).scalar()
    assert in_graph == stored == int((~trained.labelled[trained.first.nodes]).sum())


@sqlite
def test_a_file_that_vanishes_is_said_and_work_goes_on_when_it_is_back(workspace, tmp_path):
    settings = workspace.settings
    workspace.store.close()
    files = [path for path in tmp_path.iterdir() if path.name.startswith("ringfence.db")]
    away = tmp_path / "away"
    away.mkdir()
    with scheduler(tmp_path, env(settings, RINGFENCE_SCHEDULE_AUDIT="every 1 seconds")) as process:
        eventually(lambda: count(process.log, "done"), process)
        for path in files:
            path.rename(away / path.name)
        eventually(lambda: count(process.log, "store away"), process)
        eventually(lambda: count(process.log, "not started"), process)
        assert not Path(settings.audit.url.removeprefix("sqlite:///")).exists()  # no empty one
        done = count(process.log, "done")
        for path in away.iterdir():
            path.rename(tmp_path / path.name)
        eventually(lambda: count(process.log, "store back"), process)
        eventually(lambda: count(process.log, "done") > done, process)
        assert ends(process, signal.SIGTERM) == 0
    assert "there is no audit store at" in rows(settings)["audit"].failed_words


@postgresql
def test_a_database_that_refuses_everyone_is_survived(workspace, tmp_path, postgres_server):
    settings = workspace.settings
    name = make_url(settings.audit.url).database
    with scheduler(tmp_path, env(settings, RINGFENCE_SCHEDULE_AUDIT="every 1 seconds")) as process:
        eventually(lambda: count(process.log, "done"), process)
        administer(
            postgres_server,
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        eventually(lambda: count(process.log, "store away"), process)
        done = count(process.log, "done")
        administer(postgres_server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        eventually(lambda: count(process.log, "store back"), process)
        eventually(lambda: count(process.log, "done") > done, process)
        assert ends(process, signal.SIGTERM) == 0


MINIMAL = """
[neo4j]
uri = "bolt://127.0.0.1:1"
[graph]
label = "A"
key = "id"
features = "x"
class_property = "y"
[schedule]
tick_seconds = 0.1
stale_seconds = {stale}
"""

DEAD = """
from apscheduler.jobstores.memory import MemoryJobStore
calls, usual = [], MemoryJobStore.get_next_run_time
def fails(self):
    calls.append(1)
    if len(calls) > 20:
        raise OSError("the job store is locked")
    return usual(self)
MemoryJobStore.get_next_run_time = fails
"""

HANGS = """
import time
from apscheduler.jobstores.memory import MemoryJobStore
calls, usual = [], MemoryJobStore.get_due_jobs
def hangs(self, now):
    calls.append(1)
    if len(calls) > 20:
        time.sleep(3600)
    return usual(self, now)
MemoryJobStore.get_due_jobs = hangs
"""


TICKS = """
import time
from pathlib import Path
from types import SimpleNamespace
from ringfence.jobs.schedule import loop
ticks, usual = [], loop.SchedulerLoop._tick
loop.time = SimpleNamespace(sleep=time.sleep, monotonic=lambda: float(len(ticks)))
def tick(self):
    ticks.append(1)
    if {is_noted}:
        usual(self)
    if len(ticks) > {enough}:
        Path("ticked").touch()
loop.SchedulerLoop._tick = tick
"""
"""A clock that moves by a second with each tick, so that no slow machine makes one late."""
STALE_TICKS = 20


def minimal(stale=PATIENCE_SECONDS):
    return MINIMAL.format(stale=stale)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sabotage", "stale", "message"),
    [(DEAD, PATIENCE_SECONDS, "thread is dead"), (HANGS, 2, "has not ticked for")],
)
def test_the_watchdog_ends_a_process_whose_scheduler_is_dead(tmp_path, sabotage, stale, message):
    (tmp_path / "ringfence.toml").write_text(minimal(stale))
    with scheduler(tmp_path, {}, sabotage + MAIN) as process:
        assert ends(process) == 3
        assert message in process.log.read_text()
        assert "supervisor" in process.log.read_text()


@pytest.mark.slow
def test_a_healthy_scheduler_is_left_alone_although_no_store_is_there(tmp_path):
    """The negative control of the watchdog: without sabotage it lives on."""
    (tmp_path / "ringfence.toml").write_text(minimal(STALE_TICKS))
    ticks = TICKS.format(is_noted=True, enough=2 * STALE_TICKS)
    with scheduler(tmp_path, {}, ticks + MAIN) as process:
        eventually(lambda: count(process.log, "store away"), process)
        eventually((tmp_path / "ticked").exists, process)
        assert process.poll() is None, process.log.read_text()
        assert count(process.log, "store away") == 1  # said once, not at every poll
        assert ends(process, signal.SIGTERM) == 0


@pytest.mark.slow
def test_ticks_that_nobody_notes_end_a_process(tmp_path):
    """The control of the control: the clock that moves with the ticks makes a scheduler stale."""
    (tmp_path / "ringfence.toml").write_text(minimal(STALE_TICKS))
    with scheduler(tmp_path, {}, TICKS.format(is_noted=False, enough=0) + MAIN) as process:
        assert ends(process) == 3
        assert "has not ticked for" in process.log.read_text()


@pytest.mark.slow
def test_several_projects_share_one_process_and_one_that_fails_does_not_hold_up_the_other(tmp_path):
    (tmp_path / "ringfence.toml").write_text('project = "one"\n' + minimal())
    second = tmp_path / "second.toml"
    second.write_text('project = "two"\n[audit]\nurl = "sqlite:///two.db"\n' + minimal())
    store = open_store(f"sqlite:///{tmp_path / 'two.db'}")
    migrate.migrate_sql(store)
    store.close()
    with scheduler(tmp_path, {}, MAIN, "--config", str(second), "--json") as process:
        eventually(
            lambda: '"event": "failed", "project": "two"' in process.log.read_text(), process
        )
        assert '"event": "store away", "project": "one"' in process.log.read_text()
        assert ends(process, signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('timezone = "Mars/Olympus"', "Mars/Olympus"),
        ('score = "0 0 31 2 *"', "never comes"),
        ('audit = "now and then"', "every 10 minutes"),
        (
            'score = ""\naudit = ""\nreconcile = ""\nverify = ""\nverify_quick = ""',
            "switches every job off",
        ),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_at_the_start(tmp_path, line, message):
    (tmp_path / "ringfence.toml").write_text(minimal() + line)
    with pytest.raises(RingfenceError, match=message):
        parse_triggers(load(tmp_path / "ringfence.toml", {}))


def test_the_plan_can_be_shown_and_one_project_is_named_once(tmp_path):
    file = tmp_path / "ringfence.toml"
    file.write_text(minimal() + 'timezone = "Europe/Berlin"')
    arguments = ["schedule", "--check", "--json", "--config", str(file)]
    plan = json.loads(CliRunner().invoke(app, arguments).stdout)
    jobs = ["score", "audit", "reconcile", "verify", "verify_quick"]
    assert [row["job"] for row in plan] == jobs
    assert plan[2]["next"][0][11:16] == "03:30"
    file.write_text(file.read_text() + "\n[audit]\nkeep_days = 400")
    plan = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert plan[-1]["job"] == "prune"
    twice = CliRunner().invoke(app, [*arguments, "--config", str(file)])
    assert "one file per project" in str(twice.exception)
