"""Keeping it true afterwards: reconcile, verify, rescore, and when nodes are evaluated."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, text, update

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.store import tables
from ringfence.connector.store.models import active_manifest
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.due import EVALUATION_TIME
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from ringfence.models.hashing import uniforms
from tests.forms import both_forms
from tests.stores import postgresql_later, two_at_once

pytestmark = postgresql_later


def sets(workspace):
    rows = workspace.graph.read(
        "MATCH (n:Account)-[e:EVALUATED]->(r) OPTIONAL MATCH (n)-[m:MAY_BE]->(c) "
        "WITH n, e, r, c, m ORDER BY c.name "
        "RETURN n.id AS id, r.id AS run, e.key AS key, e.size AS size, "
        "collect([c.name, m.p]) AS set ORDER BY id"
    )
    return [row.data() for row in rows]


@both_forms
def test_a_sound_project_has_nothing_to_reconcile_or_to_report(scored):
    assert run_reconcile(scored.workspace, repair=False).clean
    verified = run_verification(scored.workspace)
    assert verified.problems == ()
    assert verified.anchored == verified.entries == 3  # trained, decided, applied
    assert verified.predictions > 100


DAMAGE = {
    "a wiped set": (
        "MATCH (n:Account)-[m:MAY_BE]->() WITH n, collect(m) AS all LIMIT 3 "
        "UNWIND all AS m DELETE m",
        {"set differs": 3},
    ),
    "an edited p-value": (
        "MATCH (:Account)-[m:MAY_BE]->() WITH m LIMIT 1 SET m.p = 0.999",
        {"set differs": 1},
    ),
    "an added class": (
        "MATCH (n:Account)-[e:EVALUATED {size: 1}]->(), (c:RingfenceClass) "
        "WHERE NOT (n)-[:MAY_BE]->(c) WITH n, c LIMIT 1 CREATE (n)-[:MAY_BE {p: 1.0}]->(c)",
        {"set differs": 1},
    ),
    "a lost evaluation": (
        "MATCH (:Account)-[e:EVALUATED]->() WITH e LIMIT 2 DELETE e",
        {"not projected": 2},
    ),
    "a lost run": (
        "MATCH (r:RingfenceRun) DETACH DELETE r",
        None,
    ),
    "a forged evaluation": (
        "MATCH (r:RingfenceRun), (n:Account) WHERE NOT (n)-[:EVALUATED]->() WITH r, n LIMIT 1 "
        "CREATE (n)-[:EVALUATED {key: 'test/i:' + toString(n.id), size: 1}]->(r)",
        {"stray": 1},
    ),
}


@pytest.mark.parametrize("case", two_at_once(DAMAGE))
def test_damage_in_the_graph_is_shown_and_repaired_from_sql(scored, case):
    workspace = scored.workspace
    cypher, expected = DAMAGE[case]
    before = sets(workspace)
    workspace.graph.run(cypher)
    preview = run_reconcile(workspace, repair=False)
    assert not preview.clean
    if expected is not None:
        assert preview.projections == expected
    assert run_verification(workspace).problems != ()
    assert sets(workspace) != before  # a preview repairs nothing
    assert run_reconcile(workspace, repair=True).repaired
    assert sets(workspace) == before
    assert run_reconcile(workspace, repair=False).clean
    assert run_verification(workspace).problems == ()


@both_forms
def test_a_deleted_node_keeps_its_prediction_marked(scored):
    workspace = scored.workspace
    (gone,) = workspace.graph.read("MATCH (n:Account)-[:EVALUATED]->() RETURN n.id AS id LIMIT 1")
    workspace.graph.run("MATCH (n:Account {id: $id}) DETACH DELETE n", id=gone["id"])
    preview = run_reconcile(workspace, repair=False)
    assert preview.projections == {"node gone": 1}
    assert preview.mirror.deleted == 1
    run_reconcile(workspace, repair=True)
    assert run_reconcile(workspace, repair=False).clean
    with workspace.store.reading() as connection:
        row = connection.execute(
            select(tables.prediction).where(tables.prediction.c.node_key == f"i:{gone['id']}")
        ).one()
    assert row.in_graph in (False, 0)


@both_forms
def test_a_changed_node_is_noticed(scored):
    workspace = scored.workspace
    workspace.graph.run(
        "MATCH (n:Account) WITH n LIMIT 4 SET n.features = [x IN n.features | x + 1]"
    )
    assert run_reconcile(workspace, repair=True).mirror.changed == 4
    assert run_reconcile(workspace, repair=False).clean


EDITS = {
    "a threshold": ("UPDATE run SET threshold = -0.5", "threshold changed after the decision"),
    "a p-value": (
        "UPDATE prediction SET p_values = '[1.0,1.0,1.0,1.0,1.0]'",
        "not those that were decided",
    ),
    "a run's rule": ("UPDATE run SET rule = 'EdgeEx'", "rule changed after the decision"),
    "a manifest": ("UPDATE model SET manifest = '{\"classes\": []}'", "manifest is not the one"),
}


@pytest.mark.parametrize("case", two_at_once(EDITS))
def test_an_edit_of_the_record_is_found(scored, case):
    workspace = scored.workspace
    statement, problem_text = EDITS[case]
    if case == "a manifest":
        with workspace.store.reading() as connection:
            manifest = json.loads(connection.execute(select(tables.model.c.manifest)).scalar())
        change = update(tables.model).values(manifest=json.dumps(manifest | {"seed": 9}))
    else:
        change = text(statement)
    with workspace.store.transaction() as connection:
        connection.execute(change)
    assert any(problem_text in problem for problem in run_verification(workspace).problems)


def test_a_rewritten_or_truncated_chain_is_found_by_its_anchor(scored):
    workspace = scored.workspace
    run_audit(workspace)
    with workspace.writer() as writer, workspace.store.transaction() as connection:
        for verb in ("update", "delete"):
            if connection.dialect.name == "sqlite":
                connection.execute(text(f"DROP TRIGGER audit_no_{verb}"))
        if connection.dialect.name == "postgresql":
            connection.execute(text("DROP TRIGGER audit_append_only ON audit"))
        connection.execute(text("DELETE FROM audit WHERE n = (SELECT max(n) FROM audit)"))
        del writer
    assert any("cut off" in problem for problem in run_verification(workspace).problems)
    with workspace.writer() as writer, workspace.store.transaction() as connection:
        from ringfence.connector.store import chain

        chain.append(connection, "test", writer.key, "audited", {"coverage": []})
    assert any("rewritten" in problem for problem in run_verification(workspace).problems)


@both_forms
def test_a_later_evaluation_is_kept_apart_and_promises_nothing(scored):
    workspace = scored.workspace
    with workspace.store.reading() as connection:
        before = connection.execute(select(tables.prediction)).all()
    key = before[0].node_key.removeprefix("i:")
    report = run_rescoring(workspace, [key], "the customer appealed")
    assert report.guarantee.startswith("no guarantee")
    assert list(report.sets) == [f"i:{key}"]
    with workspace.store.reading() as connection:
        assert connection.execute(select(tables.prediction)).all() == before
        rescored = connection.execute(select(tables.rescore)).all()
    assert [(row.node_key, row.reason) for row in rescored] == [
        (f"i:{key}", "the customer appealed")
    ]
    assert run_audit(workspace).total.evaluated == len(before)
    assert run_verification(workspace).problems == ()
    with pytest.raises(ConfigError, match="no reason"):
        run_rescoring(workspace, [key], " ")
    with pytest.raises(GraphError, match="no node with the key"):
        run_rescoring(workspace, ["nobody"], "why not")


def changed(workspace, **values):
    settings = workspace.settings
    conformal = settings.conformal.model_copy(update=values)
    return settings.model_copy(update={"conformal": conformal})


def test_after_a_delay_nodes_wait_until_they_are_old_enough(grown):
    with open_workspace(changed(grown.workspace, evaluate="delay", delay_hours=1.0)) as workspace:
        run_training(workspace)
        report = run_scoring(workspace)
        unlabelled = int((~grown.labelled[grown.first.nodes]).sum())
        assert (report.seq, report.waiting) == (None, unlabelled)
        workspace.graph.run("MATCH (n:Account) SET n.created_at = n.created_at - duration('PT2H')")
        run_reconcile(workspace, repair=True)  # a changed time is seen by a whole read
        assert run_scoring(workspace).evaluated == unlabelled


@both_forms
def test_at_random_ages_each_node_waits_for_its_own(grown):
    """Run after run evaluates those whose time has come; nobody twice, nobody never."""
    hours = 2.0
    with open_workspace(
        changed(grown.workspace, evaluate="random", delay_hours=hours)
    ) as workspace:
        run_training(workspace)
        unlabelled = int((~grown.labelled[grown.first.nodes]).sum())
        manifest = json.loads(active_manifest(workspace.store, workspace.project))
        assert "at a random age of its own of at most 2:00:00" in manifest["evaluation"]["words"]
        seed = node_seed(workspace.settings, manifest)
        evaluated = [run_scoring(workspace).evaluated]
        for _ in range(4):
            shift = "SET n.created_at = n.created_at - duration('PT30M')"
            workspace.graph.run(f"MATCH (n:Account) {shift}")
            run_reconcile(workspace, repair=True)  # a changed time is seen by a whole read
            evaluated.append(run_scoring(workspace).evaluated)
        assert sum(evaluated) == unlabelled
        with workspace.store.reading() as connection:
            rows = connection.execute(text("SELECT node_key, seq FROM prediction")).all()
        u = uniforms([row.node_key for row in rows], seed, EVALUATION_TIME)
        mean = {seq: u[[row.seq == seq for row in rows]].mean() for seq in {r.seq for r in rows}}
        assert sorted(mean, key=mean.get) == sorted(mean)  # smaller numbers come first
        assert len(mean) >= 4
        assert max(evaluated) < 0.5 * unlabelled


def test_at_a_date_everybody_waits_for_it(grown):
    future = datetime.now(UTC) + timedelta(days=1)
    with open_workspace(changed(grown.workspace, evaluate="date", date=future)) as workspace:
        run_training(workspace)
        assert run_scoring(workspace).evaluated == 0
    past = datetime.now(UTC) - timedelta(days=1)
    with open_workspace(changed(grown.workspace, evaluate="date", date=past)) as workspace:
        with pytest.raises(ConfigError, match="fixed before any set was seen"):
            run_scoring(workspace)
        run_training(workspace, promote="another date")
        assert run_scoring(workspace).evaluated > 0


def test_the_time_of_evaluation_can_not_be_changed_after_sets_were_seen(scored):
    with (
        open_workspace(changed(scored.workspace, evaluate="delay", delay_hours=2.0)) as workspace,
        pytest.raises(ConfigError, match="the model was trained under"),
    ):
        run_scoring(workspace)


def test_py2neo_agrees_and_finds_damage_by_itself(scored):
    workspace = scored.workspace
    assert run_verification(workspace, with_py2neo=True).problems == ()
    workspace.graph.run("MATCH (:Account)-[m:MAY_BE]->() WITH m LIMIT 1 SET m.p = 0.999")
    problems = run_verification(workspace, with_py2neo=True).problems
    assert any("py2neo client" in problem for problem in problems)
