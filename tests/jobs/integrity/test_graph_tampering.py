"""Whoever can write Cypher, without key and log: every edit of what is ours is found and named.

One project with two runs and an audit. An edit is made in a transaction, `ringfence verify` reads
inside it, and it is rolled back.
"""

from dataclasses import dataclass, replace

import pytest
from neo4j import Transaction
from neo4j.exceptions import Neo4jError
from sqlalchemy import text

from ringfence.connector.errors import RingfenceError, StoreError
from ringfence.connector.neo4j.migrate import cypher_files
from ringfence.connector.store import chain
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.scoring.score import run_scoring
from tests.jobs.integrity.graph_edits import GRAPH_EDITS, MOVES, PICK, TAKE
from tests.jobs.integrity.sample_record import drop_triggers, unguarded
from tests.stores import sqlite


@dataclass(frozen=True)
class OpenTransaction:
    """What `verify` needs of a graph, inside a transaction that is never committed."""

    transaction: Transaction

    def read(self, query, **parameters):
        return list(self.transaction.run(query, parameters))


@pytest.fixture
def audited(scored):
    """Two runs, classes that became known, an audit; and a way to see what an edit leads to."""
    workspace = scored.workspace
    scored.arrive(scored.later[0])
    run_scoring(workspace)
    scored.reveal(scored.first.nodes)
    run_audit(workspace)
    return workspace


def problems_after(workspace, driver, query):
    with driver.session(database="neo4j") as session, session.begin_transaction() as transaction:
        try:
            summary = transaction.run(query, project=workspace.project).consume()
            if not summary.counters.contains_updates:
                return ["the edit changes nothing"]
            inside = replace(workspace, graph=OpenTransaction(transaction))
            return list(run_verification(inside).problems)
        except (RingfenceError, Neo4jError) as error:
            return [str(error)]
        finally:
            transaction.close()


@pytest.mark.long
def test_every_edit_of_the_graph_is_found_and_named(audited, neo4j_driver):
    (row,) = audited.graph.read(PICK + "RETURN n.id AS id", project="test")
    assert run_verification(audited).problems == ()
    missed = {}
    for name, (query, words) in GRAPH_EDITS.items():
        found = problems_after(audited, neo4j_driver, query)
        if not any(words.replace("{key}", f"i:{row['id']}") in problem for problem in found):
            missed[name] = found
    assert missed == {}
    assert len(GRAPH_EDITS) >= 60
    assert run_verification(audited).problems == ()


@sqlite
@pytest.mark.parametrize("place", MOVES)
def test_an_evaluation_that_was_moved_is_found(audited, place):
    (row,) = audited.graph.read(PICK + "RETURN n.id AS id", project="test")
    query, run = MOVES[place]
    audited.graph.run(TAKE, project="test")
    audited.graph.run(query, project="test", run=run)
    problems = run_verification(audited).problems
    assert any(f"node i:{row['id']} (run 1): in SQL, but the node lacks" in p for p in problems)


@sqlite
def test_a_dropped_constraint_is_found(audited):
    audited.graph.run("DROP CONSTRAINT ringfence_evaluated")
    problems = run_verification(audited).problems
    assert any("the constraint ringfence_evaluated on EVALUATED is gone" in p for p in problems)


CONSTRAINTS = {
    "ringfence_migration": "FOR (m:RingfenceMigration) REQUIRE m.name IS UNIQUE",
    "ringfence_run": "FOR (r:RingfenceRun) REQUIRE r.other IS UNIQUE",
    "ringfence_class": "FOR (c:RingfenceClass) REQUIRE (c.name, c.other) IS UNIQUE",
    "ringfence_coverage": "FOR (a:CoverageAudit) REQUIRE a.other IS UNIQUE",
    "ringfence_fence": "FOR (f:RingfenceFence) REQUIRE f.other IS UNIQUE",
    "ringfence_evaluated": "FOR ()-[e:EVALUATED]-() REQUIRE e.other IS UNIQUE",
}
"""Our constraints by name, each on another property than the migrations make it for."""


@sqlite
def test_a_constraint_of_the_same_name_on_another_property_is_found(audited):
    for name, other in CONSTRAINTS.items():
        audited.graph.run(f"DROP CONSTRAINT {name}")
        audited.graph.run(f"CREATE CONSTRAINT {name} {other}")
    problems = [problem for problem in run_verification(audited).problems if "is about" in problem]
    assert len(problems) == len(CONSTRAINTS)
    for name in CONSTRAINTS:
        assert any(f"the constraint {name} on " in problem for problem in problems)
    file = cypher_files()[0]
    for name, statement in zip(CONSTRAINTS, file.statements(), strict=True):
        audited.graph.run(f"DROP CONSTRAINT {name}")
        audited.graph.run(statement)
    assert run_verification(audited).problems == ()


@sqlite
def test_an_anchor_that_was_set_back_to_an_earlier_entry_is_found(audited):
    """It fits the chain; that a later session stored more before it wrote is what tells."""
    with audited.store.reading() as connection:
        entries = chain.read_entries(connection, audited.project)
    last = max(entry.facts["lease"] for entry in entries)
    earlier = [entry for entry in entries if entry.facts["lease"] < last]
    set_anchor(audited, earlier[-1])
    assert run_verification(audited).problems == ()  # as a session that died leaves it
    set_anchor(audited, earlier[-2])
    (problem,) = run_verification(audited).problems
    assert "it was set back" in problem
    run_audit(audited)  # its session stores what the ones before it left
    assert run_verification(audited).problems == ()


@sqlite
def test_the_next_session_shows_the_coverage_of_an_audit_that_died(audited):
    """Whatever it does: else the anchor would cover an audit that the graph does not show."""
    set_coverage_back(audited)
    assert any("CoverageAudit" in problem for problem in run_verification(audited).problems)
    with audited.store.reading() as connection:
        entries = chain.read_entries(connection, audited.project)
    audits = [entry for entry in entries if entry.kind == "audited"]
    set_anchor(audited, entries[audits[-1].n - 2])
    run_scoring(audited)
    assert run_verification(audited).problems == ()


def set_coverage_back(workspace):
    workspace.graph.run("MATCH (a:CoverageAudit) SET a.covered = 0, a.at = datetime('2020-01-01')")


def set_anchor(workspace, entry):
    workspace.graph.run(
        "MATCH (f:RingfenceFence {project: $project}) SET f.chain_n = $n, f.chain_hash = $hash",
        project=workspace.project, n=entry.n, hash=entry.hash,
    )  # fmt: skip


@sqlite
def test_an_edited_memory_of_the_chain_is_refused_until_its_node_is_deleted(audited):
    graph = audited.graph
    for edit in ("f.chain_n = 9999", "f.chain_hash = 'ab'", "f.chain_n = 'x'", "f.token = 'x'"):
        graph.run(f"MATCH (f:RingfenceFence) SET {edit}")
        with pytest.raises(RingfenceError, match="someone changed"):
            run_scoring(audited)
        assert len(run_verification(audited).problems) == 1
        graph.run("MATCH (f:RingfenceFence) DELETE f")
        run_audit(audited)
        assert run_verification(audited).problems == ()


HIDDEN = "UPDATE prediction SET covered = TRUE WHERE label IS NOT NULL"
"""What whoever has both stores does to look well: SQL and graph tell the same story."""


@sqlite
@pytest.mark.slow
def test_whoever_has_both_stores_is_found_where_an_entry_seals_the_rows(audited):
    """Sets, coverage and runs changed on both sides alike."""
    workspace = audited
    with workspace.store.transaction() as connection:
        drop_triggers(connection)
        connection.execute(text(HIDDEN))
        connection.execute(text("UPDATE label SET covered = TRUE"))
        connection.execute(text("UPDATE coverage SET covered = known, verdict = 'kept'"))
        connection.execute(text("UPDATE run SET alpha = 0.5"))
    workspace.graph.run("MATCH (a:CoverageAudit) SET a.covered = a.known, a.verdict = 'kept'")
    workspace.graph.run("MATCH (r:RingfenceRun) SET r.alpha = 0.5")
    workspace.graph.run("MATCH ()-[e:EVALUATED]->() SET e.alpha = 0.5")
    problems = "\n".join(run_verification(workspace).problems)
    for words in ("covered in its label row", "coverage of run 1, total", "run 1: alpha changed"):
        assert words in problems
    with workspace.store.transaction() as connection:
        connection.execute(text("DELETE FROM audit"))
    workspace.graph.run("MATCH (f:RingfenceFence) REMOVE f.chain_n, f.chain_hash")
    problems = "\n".join(run_verification(workspace).problems)
    assert "run 1 stands in SQL, but was never decided" in problems
    with pytest.raises(StoreError):
        run_scoring(workspace)


LAST_RUN = (
    "DELETE FROM coverage WHERE seq = 2", "DELETE FROM grouping", "DELETE FROM label",
    "DELETE FROM threshold WHERE seq = 2",
    "DELETE FROM further_set WHERE node_key IN (SELECT node_key FROM prediction WHERE seq = 2)",
    "DELETE FROM worklist_entry WHERE seq = 2", "UPDATE worklist_entry SET known = false",
    "DELETE FROM prediction WHERE seq = 2", "DELETE FROM run WHERE seq = 2",
    "DELETE FROM coverage", "DELETE FROM alarm_event", "DELETE FROM alarm",
    "DELETE FROM audit_mark",
    "UPDATE prediction SET label = NULL, labelled_ns = NULL, covered = NULL, "
    "covered_naive = NULL, unseen = NULL",
)  # fmt: skip


@sqlite
@pytest.mark.slow
def test_both_stores_put_back_to_an_earlier_moment_are_not_found(audited):
    """What can't be found without something outside of both: the report's copy, a backup, a log."""
    workspace = audited
    with workspace.store.transaction() as connection, unguarded(connection):
        bodies = connection.execute(text("SELECT n, body FROM audit ORDER BY n")).all()
        end = next(n for n, body in bodies if '"kind":"applied"' in body)
        connection.execute(text(f"DELETE FROM audit WHERE n > {end}"))
        for statement in LAST_RUN:
            connection.execute(text(statement))
        connection.execute(text("UPDATE lease SET next_seq = 2, watermark_ns = (SELECT "
                                "watermark_to_ns FROM run WHERE seq = 1)"))  # fmt: skip
        (hash_,) = connection.execute(text(f"SELECT hash FROM audit WHERE n = {end}")).one()
    graph = workspace.graph
    graph.run("MATCH (r:RingfenceRun {seq: 2})<-[:EVALUATED]-(n)-[m:MAY_BE]->() DELETE m")
    graph.run("MATCH (r:RingfenceRun {seq: 2}) DETACH DELETE r")
    graph.run("MATCH (a:CoverageAudit) DETACH DELETE a")
    graph.run("MATCH (f:RingfenceFence) SET f.chain_n = $n, f.chain_hash = $h", n=end, h=hash_)
    assert run_verification(workspace).problems == ()
