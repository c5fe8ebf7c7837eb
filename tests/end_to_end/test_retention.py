"""Retention through graph, SQL, chain and command line: nothing that is promised rests on it."""

import json
import os
import signal
import subprocess
import sys

import pytest
from sqlalchemy import select

from ringfence.connector import fault_points
from ringfence.connector.errors import LeaseHeld
from ringfence.connector.store import tables
from ringfence.connector.store.predictions import evaluated_keys
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.promotion import run_promotion, run_rollback
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.retention import prune
from ringfence.jobs.retention.prune import run_prune
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.schedule.job_functions import prune as scheduled_prune
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import run_explain
from tests.stores import postgresql_later, sqlite

A_MOMENT = 1e-9
LIVING = {"calibration": "window", "window": 500, "adapt": True}


def with_settings(workspace, **tables_):
    settings = workspace.settings
    update = {
        name: getattr(settings, name).model_copy(update=values) for name, values in tables_.items()
    }
    return settings.model_copy(update=update)


def rows(workspace, table):
    with workspace.store.reading() as connection:
        query = select(table).where(table.c.project == workspace.project)
        return [row._asdict() for row in connection.execute(query)]


@postgresql_later
def test_a_pruned_project_verifies_repairs_explains_scores_and_audits(trained, monkeypatch):
    period = {"keep_days": A_MOMENT, "keep_open_days": A_MOMENT}
    with open_workspace(with_settings(trained.workspace, audit=period)) as workspace:
        first = run_scoring(workspace)
        trained.reveal(trained.first.nodes)
        audited = run_audit(workspace)
        assert run_prune(workspace, dry_run=True).nodes == first.evaluated
        assert run_verification(workspace).problems == ()
        done = run_prune(workspace)
        assert (done.runs, done.nodes) == ((1,), first.evaluated)
        found = run_verification(workspace)
        assert (found.problems, found.anchored) == ((), found.entries)
        workspace.graph.run("MATCH (:Account)-[m:MAY_BE]->() WITH m LIMIT 3 SET m.p = 0.999")
        assert run_verification(workspace).problems != ()
        assert run_reconcile(workspace, repair=True).repaired
        assert run_verification(workspace).problems == ()
        key = evaluated_keys(workspace.store, workspace.project)[0]
        explained = run_explain(workspace, key, why=True)
        assert explained.removed_ns is not None
        assert explained.reasons is not None
        again = run_audit(workspace)
        assert (again.total.known, again.total.covered) == (
            audited.total.known,
            audited.total.covered,
        )
        trained.arrive(trained.later[0])
        assert run_scoring(workspace).evaluated == len(trained.later[0].nodes)
        trained.arrive(trained.later[1])
        run_scoring(workspace)
        run_migrations(workspace)
        assert scheduled_prune(workspace, lambda *_: None).words.startswith("details of 0 nodes")
        run_audit(workspace)
        monkeypatch.setattr(prune, "MAX_TURN_NODES", 1)  # a run is a turn
        turn, last = (scheduled_prune(workspace, lambda *_: None) for _ in range(2))
        gone = "details of 100 nodes of 1 old runs removed"
        assert (turn.words, last.words) == (f"{gone}, 100 nodes left for the next turn", gone)
        assert turn.retry_seconds == workspace.settings.schedule.retry_seconds
        assert last.retry_seconds is None
        assert run_verification(workspace).problems == ()


@pytest.mark.long
@sqlite
def test_a_pruned_project_decides_what_its_unpruned_twin_decides(grown, tmp_path):
    """Window, adaptive level, two versions, a promotion and a rollback; one of two is pruned."""
    period = {"keep_days": A_MOMENT, "keep_open_days": A_MOMENT}
    base = with_settings(grown.workspace, audit=period, conformal=LIVING)
    twins = []
    for name in ("whole", "pruned"):
        folder = base.engine.model_copy(update={"folder": tmp_path / name})
        twins.append(open_workspace(base.model_copy(update={"project": name, "engine": folder})))
    parts = list(batches(grown.sample, [300, *[25] * 8]))[1:]
    with twins[0] as whole, twins[1] as pruned:
        for workspace in (whole, pruned):
            run_migrations(workspace)
            run_training(workspace)
        known = parts[0].nodes[:0]
        for number, part in enumerate(parts):
            grown.arrive(part)
            for workspace in (whole, pruned):
                run_scoring(workspace)
            grown.reveal(known)
            known = part.nodes
            for workspace in (whole, pruned):
                run_audit(workspace)
                if number == 3:
                    second = run_training(workspace)
                    run_promotion(workspace, second.version, "newer")
                if number == 5:
                    run_rollback(workspace, "it was not better")
            assert run_prune(pruned).nodes > 0
        same = ("seq", "threshold", "level", "n_calibration", "n_evaluated", "levels")
        decided = [
            [{name: row[name] for name in same} for row in rows(one, tables.run)]
            for one in (whole, pruned)
        ]
        assert decided[0] == decided[1]
        sets = [
            {row["node_key"]: (row["seq"], row["classes"], row["label"], row["covered"])
             for row in rows(one, tables.prediction)}
            for one in (whole, pruned)
        ]  # fmt: skip
        assert sets[0] == sets[1]
        assert len(rows(pruned, tables.joined)) == len(rows(whole, tables.joined)) > 0
        counted = [
            [(r["seq"], r["slice"], r["name"], r["known"], r["covered"], r["verdict"])
             for r in rows(one, tables.coverage)]
            for one in (whole, pruned)
        ]  # fmt: skip
        assert sorted(counted[0]) == sorted(counted[1])
        assert rows(whole, tables.removal) == []
        for workspace in (whole, pruned):
            assert run_verification(workspace).problems == ()


KILLED = """
import os, signal, sys
from pathlib import Path
from ringfence.connector import fault_points
from ringfence.jobs.config.load import load
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.retention.prune import run_prune

def reach(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

fault_points.reach = reach
with open_workspace(load(Path(sys.argv[1]))) as workspace:
    run_prune(workspace, keep_days=1e-9)
"""


@pytest.mark.long
@pytest.mark.parametrize("place", fault_points.RETENTION_NAMES)
def test_a_killed_process_leaves_a_sound_record(scored, tmp_path, place):
    workspace = scored.workspace
    scored.reveal(scored.first.nodes)
    run_audit(workspace)
    neo4j, audit = workspace.settings.neo4j, workspace.settings.audit
    environment = os.environ | {
        "RINGFENCE_NEO4J_USER": neo4j.user,
        "RINGFENCE_NEO4J_PASSWORD": neo4j.password.get_secret_value(),
        "RINGFENCE_AUDIT_URL": audit.url,
    }
    if audit.password is not None:
        environment["RINGFENCE_AUDIT_PASSWORD"] = audit.password.get_secret_value()
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "ringfence.toml"), place],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr
    whole = [row["scores"].startswith("[") for row in rows(workspace, tables.prediction)]
    assert all(whole) if place != "removed" else not any(whole)
    assert run_verification(workspace).problems == ()


@sqlite
def test_prune_waits_for_nobody_and_disturbs_nobody(grown):
    workspace = grown.workspace
    with workspace.lease(), pytest.raises(LeaseHeld):
        run_prune(workspace, keep_days=1)
    with workspace.lease():
        assert (
            run_prune(workspace, keep_days=1, dry_run=True).runs == ()
        )  # a preview writes nothing
    assert json.loads(json.dumps(run_prune(workspace).as_json()))["before"] is None
