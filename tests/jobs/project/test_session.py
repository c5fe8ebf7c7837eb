"""The write session: every command that writes refuses, recovers and anchors in the same way."""

from contextlib import nullcontext

import pytest
from sqlalchemy import text, update

from ringfence.connector.errors import LeaseHeld, LeaseLost, StoreError
from ringfence.connector.neo4j.write import fence, prediction_sets
from ringfence.connector.store import chain, runs, tables
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project import session
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from tests.leases import Heartbeat, StoreClock
from tests.stores import sqlite


def some_key(workspace):
    return str(workspace.graph.read("MATCH (n:Account) RETURN min(n.id) AS id")[0]["id"])


VERBS = {
    "score": run_scoring,
    "audit": run_audit,
    "train": run_training,
    "rescore": lambda workspace: run_rescoring(workspace, [some_key(workspace)], "asked for"),
    "reconcile": lambda workspace: run_reconcile(workspace, repair=True),
    "a preview of reconcile": lambda workspace: run_reconcile(workspace, repair=False),
    "migrate": run_migrations,
}


def allow_edits(connection):
    """Take away what keeps the chain's rows as they are, as an intruder with the password would."""
    if connection.dialect.name == "sqlite":
        for verb in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER audit_no_{verb}"))
    else:
        connection.execute(text("DROP TRIGGER audit_append_only ON audit"))


def test_after_training_the_graph_remembers_the_chains_newest_entry(grown, monkeypatch):
    workspace = grown.workspace
    with monkeypatch.context() as broken:  # control: a session without its end
        broken.setattr(session, "anchor_newest_entry", lambda *_: None)
        run_training(workspace)
    verified = run_verification(workspace)
    assert (verified.entries, verified.anchored) == (1, None)
    run_training(workspace)
    verified = run_verification(workspace)
    assert verified.anchored == verified.entries == 2
    assert verified.problems == ()
    with workspace.store.transaction() as connection:
        allow_edits(connection)
        connection.execute(text("DELETE FROM audit WHERE n = 2"))
    assert any("cut off" in problem for problem in run_verification(workspace).problems)


def _silent(*_given):
    pass


@sqlite
def test_a_rewritten_entry_stays_visible_however_many_sessions_follow(trained):
    workspace = trained.workspace
    with workspace.writer() as writer, workspace.store.transaction() as connection:
        allow_edits(connection)
        connection.execute(text("DELETE FROM audit WHERE n = 1"))
        chain.append(connection, "test", writer.key, "audited", {"coverage": []})
    for _ in range(2):  # nobody writes on top of it, and nobody lets the graph forget it
        with pytest.raises(StoreError, match="another entry"), write_session(workspace, _silent):
            pass
    assert any("rewritten" in problem for problem in run_verification(workspace).problems)


@sqlite
@pytest.mark.parametrize("verb", VERBS)
def test_a_store_older_than_the_graph_is_refused_by_every_command_that_writes(scored, verb):
    workspace = scored.workspace
    with workspace.store.transaction() as connection:  # as a backup from before the run would be
        connection.execute(update(tables.lease).values(next_seq=1))
    with pytest.raises(StoreError, match="older than the graph"):
        VERBS[verb](workspace)


@sqlite
@pytest.mark.parametrize("verb", ["score", "audit", "train", "rescore", "reconcile"])
def test_a_run_left_decided_is_finished_by_whoever_writes_next(trained, verb, monkeypatch):
    workspace = trained.workspace

    def crash(*_given):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(prediction_sets, "write_sets", crash)
        with pytest.raises(KeyboardInterrupt):
            run_scoring(workspace)
    assert runs.undone(workspace.store, workspace.project) == [1]
    run_reconcile(workspace, repair=False)  # control: a preview leaves it as it is
    assert runs.undone(workspace.store, workspace.project) == [1]
    VERBS[verb](workspace)
    assert runs.undone(workspace.store, workspace.project) == []
    assert run_verification(workspace).problems == ()


@sqlite
def test_a_session_that_fails_leaves_the_anchor_to_the_next(trained):
    workspace = trained.workspace

    def fail():
        with write_session(workspace, lambda *_: None) as opened:
            with workspace.store.transaction() as connection:
                chain.append(connection, "test", opened.writer.key, "audited", {"coverage": []})
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert fence.read_anchor(workspace.graph, "test").n == 1
    run_scoring(workspace)  # decided and applied follow the two entries before
    assert fence.read_anchor(workspace.graph, "test").n == 4


@sqlite
def test_a_session_without_news_writes_nothing_to_the_graph(trained):
    workspace = trained.workspace
    asked = "MATCH (f:RingfenceFence) RETURN f.asked AS token"
    before = workspace.graph.read(asked)[0]["token"]
    with write_session(workspace, lambda *_: None) as opened:
        assert opened.writer.lease.token > before
    assert workspace.graph.read(asked)[0]["token"] == before


def test_the_first_migration_makes_the_tables_and_later_ones_wait_for_the_lease(settings):
    with open_workspace(settings) as workspace:
        assert run_migrations(workspace) != []
        assert run_migrations(workspace) == []
        with workspace.lease(), pytest.raises(LeaseHeld, match="is working on project"):
            run_migrations(workspace)
        assert run_migrations(workspace) == []
        assert not (settings.engine.folder / "audit.key").exists()  # nothing was decided yet


@sqlite
@pytest.mark.parametrize("beating", [True, False])
def test_a_session_keeps_its_lease_while_a_long_training_works(workspace, monkeypatch, beating):
    lease_seconds = workspace.settings.engine.lease_seconds
    clock, heart = StoreClock(monkeypatch), Heartbeat(monkeypatch)
    if not beating:  # the control: somebody who waits for the lease gets it
        monkeypatch.setattr(session, "heartbeat", lambda *_: nullcontext())
    with (
        open_workspace(workspace.settings) as opened,
        write_session(opened, lambda *_: None) as working,
    ):
        for _ in range(3):
            clock.advance(lease_seconds / 2)
            assert heart.beat() if beating else not heart.is_alive()
        if beating:
            with pytest.raises(LeaseHeld, match="is working on project"), workspace.lease():
                pass
        else:
            with workspace.lease():
                pass
        with opened.store.transaction() as connection:
            if beating:
                working.writer.begin(connection)
            else:
                with pytest.raises(LeaseLost):
                    working.writer.begin(connection)


def lose_files(workspace, taken_over):
    with workspace.lease():
        if taken_over:
            with workspace.store.transaction() as connection:
                connection.execute(update(tables.lease).values(token=tables.lease.c.token + 1))
        raise FileNotFoundError("others.1")


@sqlite
def test_files_that_a_successor_removed_are_told_as_a_lost_lease(workspace):
    with pytest.raises(LeaseLost):
        lose_files(workspace, taken_over=True)
    with workspace.store.transaction() as connection:
        connection.execute(update(tables.lease).values(expires_ns=0))
    with pytest.raises(FileNotFoundError):  # still ours: the error is what it is
        lose_files(workspace, taken_over=False)
