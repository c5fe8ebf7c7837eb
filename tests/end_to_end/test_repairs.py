"""What a crash, a freeze or an old backup leaves behind, one case each; tests/faults has all."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text, update

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError, ServerError, StoreError
from ringfence.connector.neo4j.driver import SLOW_TRIES
from ringfence.connector.neo4j.read.sync import sync_mirror
from ringfence.connector.neo4j.write import coverage_audits
from ringfence.connector.store import chain, coverage, tables
from ringfence.connector.store.engine import open_store
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.scoring import decision
from ringfence.jobs.scoring.score import run_scoring
from tests.forms import both_forms, typed_as_well
from tests.patience import wait_until
from tests.stores import sqlite

COVERAGES = """
MATCH (a:CoverageAudit)-[:AUDITS]->(:RingfenceRun)
RETURN a.seq AS seq, a.slice AS slice, a.known AS known, a.covered AS covered
"""


@typed_as_well
def test_an_audit_that_died_between_the_stores_is_made_good_by_the_next(scored, monkeypatch):
    workspace = scored.workspace
    run_audit(workspace)
    scored.reveal(scored.first.nodes[~scored.labelled[scored.first.nodes]])

    def crash(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(coverage_audits, "write_coverage", crash)
        with pytest.raises(KeyboardInterrupt):
            run_audit(workspace)
    scored.arrive(scored.later[0])  # the next audit's total stands at the next run
    run_scoring(workspace)
    run_audit(workspace)
    shown = {tuple(row.values()) for row in workspace.graph.read(COVERAGES)}
    stored = coverage.stored(workspace.store, workspace.project)
    assert shown == {(row.seq, row.slice, row.known, row.covered) for row in stored}


def test_a_store_that_lacks_the_graphs_last_run_is_refused_however_often_one_tries(scored):
    workspace = scored.workspace
    with workspace.store.transaction() as connection:  # as a backup from before the run would be
        connection.execute(update(tables.lease).values(next_seq=1, token=tables.lease.c.token - 1))
    for _ in range(4):  # each attempt takes a newer lease
        with pytest.raises(StoreError, match="older than the graph"):
            run_scoring(workspace)
        with pytest.raises(StoreError, match="older than the graph"):
            run_audit(workspace)


@both_forms
@sqlite
def test_a_graph_from_before_the_last_runs_is_noticed_and_repaired(scored):
    workspace = scored.workspace
    scored.arrive(scored.later[0])
    second = run_scoring(workspace)
    scored.arrive(scored.later[1])
    run_scoring(workspace)
    assert run_scoring(workspace).evaluated == 0  # control: nothing is due, and nothing refused
    restored = [  # as a backup from before run 2 would have it; nodes of run 3 did not exist
        "MATCH (n)-[:EVALUATED]->(:RingfenceRun {seq: 3}) DETACH DELETE n",
        "MATCH (n)-[:EVALUATED]->(:RingfenceRun {seq: 2}), (n)-[m:MAY_BE]->() DELETE m",
        "MATCH (r:RingfenceRun) WHERE r.seq > 1 DETACH DELETE r",
    ]
    for query in restored:
        workspace.graph.run(query)
    for _ in range(2):
        with pytest.raises(GraphError, match=r"2 of 3 runs .* not in the graph .run 2 first") as no:
            run_scoring(workspace)
        assert "ringfence reconcile --repair" in str(no.value)
    done = run_reconcile(workspace, repair=True)
    assert done.projections["not projected"] == second.evaluated
    assert run_verification(workspace).problems == ()
    shown = "MATCH (:Account)-[:EVALUATED]->(r) WHERE r.seq > 1 RETURN count(*) AS n"
    assert workspace.graph.read(shown)[0]["n"] == second.evaluated
    assert run_scoring(workspace).evaluated == 0


@both_forms
@sqlite
def test_a_node_whose_key_changed_gets_no_second_set(scored, monkeypatch):
    workspace = scored.workspace
    workspace.graph.run(
        "MATCH (n:Account)-[:EVALUATED]->() WITH n ORDER BY n.id LIMIT 10 SET n.id = n.id + 1000000"
    )
    scored.arrive(scored.later[0])
    for _ in range(2):  # the nightly repair reads all keys anew, and leaves the mark where it is
        assert run_reconcile(workspace, repair=True).projections["key changed"] == 10
    report = run_scoring(workspace)
    assert (report.evaluated, report.evaluated_before) == (100, 10)
    assert any(note.startswith("10 nodes have another key") for note in report.run.notes)
    twice = (
        "MATCH (n)-[e:EVALUATED]->() WITH n, count(e) AS sets WHERE sets > 1 RETURN count(n) AS n"
    )
    assert workspace.graph.read(twice)[0]["n"] == 0
    again = run_scoring(workspace)
    assert (again.seq, again.evaluated_before) == (None, 10)
    with monkeypatch.context() as blind:  # control: by their keys alone they are due
        blind.setattr(decision, "leave_out_evaluated", lambda _workspace, _mirror, due: due)
        assert run_scoring(workspace).evaluated == 10
    assert workspace.graph.read(twice)[0]["n"] == 10


@pytest.mark.long
@sqlite
def test_a_transaction_in_the_graph_ends_with_its_lease(workspace):
    tries = []

    ended = "SHOW TRANSACTIONS YIELD status WHERE status STARTS WITH 'Terminated' RETURN status"

    def slow(tx):
        tries.append(tx)
        tx.run("CREATE (:Late)").consume()
        wait_until(lambda: workspace.graph.read(ended), "the end of the transaction")

    with pytest.raises(ServerError, match="longer than the run's lease"):
        workspace.graph.write(slow, timeout_seconds=0.5)
    assert len(tries) == SLOW_TRIES
    assert workspace.graph.read("MATCH (n:Late) RETURN count(n) AS n")[0]["n"] == 0


def test_a_silent_transaction_in_postgresql_lets_its_locks_go(sql_url):
    if sql_url.startswith("sqlite"):
        pytest.skip("SQLite has no such timeout; docs/reliability.md says what happens there")
    store = open_store(sql_url.replace("postgres:@", "postgres@"))

    def be_silent() -> None:
        with store.transaction() as connection:
            store.end_when_silent(connection, 0.2)
            pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            wait_until(lambda: not is_there(pid), "the end of the session")
            connection.execute(text("SELECT 1"))

    def is_there(pid):
        with store.reading() as connection:
            listed = text("SELECT 1 FROM pg_stat_activity WHERE pid = :pid")
            return connection.execute(listed, {"pid": pid}).first()

    with pytest.raises(StoreError, match="idle"):
        be_silent()
    store.close()


@typed_as_well
def test_a_node_stamped_exactly_at_the_watermark_is_read(trained):
    workspace = trained.workspace
    engine = workspace.settings.engine.model_copy(update={"overlap_seconds": 0.0})
    settings = workspace.settings.model_copy(update={"engine": engine})
    reader = type(workspace)(settings, workspace.mapping, workspace.graph, workspace.store).reader(
        lambda *_: None
    )
    read = sync_mirror(reader)
    mark = read.mirror.watermark_ns
    moment = datetime.fromtimestamp(mark // 1_000_000_000, UTC)
    workspace.graph.run(
        "MATCH (o:Account) WITH o LIMIT 1 CREATE (:Account {id: 9001, features: o.features, "
        "created_at: $second + duration({nanoseconds: $ns})})",
        second=moment,
        ns=mark % 1_000_000_000,
    )
    mirrors.save(read.mirror, workspace.mirror)
    again = sync_mirror(reader)
    assert (len(again.new_rows), again.rebuilt) == (1, "")


def test_the_chains_key_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            chain.chain_key(None, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(chain.chain_key(None, tmp_path)) == 64
    (tmp_path / "audit.key").write_text("")  # as a crash in the middle once left it
    with pytest.raises(StoreError, match="is empty"):
        chain.chain_key(None, tmp_path)
