"""From a new node in Neo4j to its set in Cypher and its row in SQL, and back from its class."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from sqlalchemy import select, update

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import (
    ConfigError,
    LeaseHeld,
    ModelError,
    StoreError,
)
from ringfence.connector.keys import encode_key
from ringfence.connector.neo4j import migrate
from ringfence.connector.neo4j.read.sync import mirror_identity
from ringfence.connector.neo4j.write import bulk
from ringfence.connector.records import Prediction, RunFacts
from ringfence.connector.store import chain, runs, tables
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples.accounts import load as load_batch
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.promise import promise_of_run
from tests.forms import typed_as_well
from tests.stores import postgresql_later

SETS = """
MATCH (n:Account)-[e:EVALUATED]->(r:RingfenceRun)
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass)
RETURN n.id AS id, r.seq AS seq, e.size AS size, collect(c.name) AS names, collect(m.p) AS p
ORDER BY id
"""


def stored(workspace):
    with workspace.store.reading() as connection:
        return connection.execute(
            select(tables.prediction).order_by(tables.prediction.c.node_key)
        ).all()


def last_run(workspace):
    with workspace.store.reading() as connection:
        return connection.execute(select(tables.run).order_by(tables.run.c.seq.desc())).first()


def projected(workspace):
    rows = [row.data() for row in workspace.graph.read(SETS)]
    return {row["id"]: (row["seq"], row["size"], dict(zip(row["names"], row["p"], strict=True)))
            for row in rows}  # fmt: skip


@typed_as_well
def test_a_new_node_has_its_set_in_cypher_and_its_row_in_sql(grown):
    workspace = grown.workspace
    trained = run_training(workspace)
    assert trained.train + trained.validation + trained.calibration == int(
        grown.labelled[grown.first.nodes].sum()
    )
    first = run_scoring(workspace)
    assert first.seq == 1
    assert first.evaluated == int((~grown.labelled[grown.first.nodes]).sum())
    grown.arrive(grown.later[0])
    second = run_scoring(workspace)
    assert (second.seq, second.new_nodes, second.evaluated) == (2, 100, 100)

    in_sql = stored(workspace)
    in_graph = projected(workspace)
    assert len(in_sql) == len(in_graph) == first.evaluated + 100
    classes = sorted(grown.sample.classes)
    for row in in_sql:
        seq, size, p = in_graph[int(row.node_key.removeprefix("i:"))]
        by_class = dict(zip(classes, json.loads(row.p_values), strict=True))
        assert seq == row.seq
        assert size == row.size == len(p)
        assert p == {name: value for name, value in by_class.items() if value > 0.1}
        assert sorted(p) == sorted(json.loads(row.classes))


@postgresql_later
def test_every_run_stores_all_three_thresholds(trained):
    workspace = trained.workspace
    report = run_scoring(workspace)
    row = last_run(workspace)
    assert row.state == "applied"
    assert row.threshold == row.threshold_node
    assert len({row.threshold_node, row.threshold_edge, row.threshold_naive}) == 3
    assert report.run.threshold_naive == row.threshold_naive
    assert row.n_calibration == row.effective_calibration
    naive = [
        sum(score >= row.threshold_naive for score in json.loads(prediction.scores))
        for prediction in stored(workspace)
    ]
    assert row.mean_size_naive == pytest.approx(sum(naive) / len(naive))


@typed_as_well
def test_a_node_is_evaluated_once_and_a_second_run_finds_nothing(scored):
    workspace = scored.workspace
    before = stored(workspace)
    again = run_scoring(workspace)
    assert (again.seq, again.evaluated) == (None, 0)
    run_training(workspace, promote="newer")  # a new model version does not evaluate again either
    assert run_scoring(workspace).seq is None
    assert stored(workspace) == before


def test_the_primary_key_refuses_a_second_look(scored):
    workspace = scored.workspace
    first = runs.one_run(workspace.store, workspace.project, 1)
    facts = RunFacts(**{field.name: getattr(first, field.name) for field in fields(RunFacts)})
    evaluated = stored(workspace)[0]
    twice = Prediction(evaluated.node_key, (), (0.0,) * 5, (0.0,) * 5, 1)
    with workspace.writer() as writer, pytest.raises(Exception, match=r"(?i)unique"):
        runs.decide(writer, runs.Decision(facts, [twice], []))
    assert last_run(workspace).seq == 1  # the whole decision was rolled back


@typed_as_well
def test_a_run_that_was_decided_but_not_applied_is_replayed_and_not_recomputed(
    trained, monkeypatch
):
    workspace = trained.workspace

    def crash(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("ringfence.connector.neo4j.write.prediction_sets.write_sets", crash)
        with pytest.raises(KeyboardInterrupt):
            run_scoring(workspace)
    assert last_run(workspace).state == "decided"
    decided = stored(workspace)
    assert projected(workspace) == {}

    trained.arrive(trained.later[0])  # the graph has grown since: recomputing would change the sets
    report = run_scoring(workspace)
    assert report.recovered == (1,)
    assert report.evaluated == 100
    after = [row for row in stored(workspace) if row.seq == 1]
    assert after == decided
    in_graph = projected(workspace)
    for row in decided:
        seq, size, _ = in_graph[int(row.node_key.removeprefix("i:"))]
        assert (seq, size) == (1, row.size)


def test_applying_twice_changes_nothing(scored):
    workspace = scored.workspace
    before = projected(workspace)
    with workspace.store.transaction() as connection:
        connection.execute(update(tables.run).values(state="decided"))
    assert run_scoring(workspace).recovered == (1,)
    assert projected(workspace) == before


@typed_as_well
def test_a_late_class_updates_the_run_that_predicted_it(scored):
    workspace = scored.workspace
    unlabelled = scored.first.nodes[~scored.labelled[scored.first.nodes]]
    nothing = run_audit(workspace)
    assert [row.verdict for row in nothing.rows] == ["not enough known yet"] * 2

    scored.arrive(scored.later[0])
    run_scoring(workspace)
    scored.reveal(unlabelled)
    report = run_audit(workspace)
    assert report.newly_known == len(unlabelled)
    by_run = {row.seq: row for row in report.rows if row.slice == "run"}
    assert (by_run[1].known, by_run[2].known) == (len(unlabelled), 0)
    truth = {encode_key(int(i)): scored.sample.classes[scored.sample.y[i]] for i in unlabelled}
    hits = [truth[row.node_key] in json.loads(row.classes)
            for row in stored(workspace) if row.seq == 1]  # fmt: skip
    assert by_run[1].covered == sum(hits)
    assert report.total.known == len(unlabelled)
    assert report.total.evaluated == len(unlabelled) + 100

    nodes = workspace.graph.read(
        "MATCH (a:CoverageAudit {slice: 'run'})-[:AUDITS]->(r:RingfenceRun) "
        "RETURN r.seq AS seq, a.covered AS covered, a.verdict AS verdict ORDER BY seq"
    )
    assert [(n["seq"], n["covered"]) for n in nodes] == [(1, sum(hits)), (2, 0)]
    assert nodes[0]["verdict"] == by_run[1].verdict


@postgresql_later
def test_a_class_never_seen_in_training_counts_as_missed(scored):
    workspace = scored.workspace
    workspace.graph.run("MATCH (n:Account)-[:EVALUATED]->() SET n.kind = 'unheard of'")
    report = run_audit(workspace)
    assert report.total.known == report.total.evaluated
    assert (report.total.covered, report.total.covered_naive) == (0, 0)
    assert report.alarm
    assert report.total.verdict == "broken"


@postgresql_later
def test_under_edge_ex_an_isolated_node_waits_for_its_first_neighbour(grown):
    settings = grown.workspace.settings
    edge = settings.model_copy(
        update={"conformal": settings.conformal.model_copy(update={"rule": "EdgeEx"})}
    )
    with open_workspace(edge) as workspace:
        run_training(workspace)
        isolated = run_scoring(workspace).waiting
        workspace.graph.run(
            "MATCH (o:Account) WITH o LIMIT 1 CREATE (:Account {id: 9001, features: o.features, "
            "created_at: datetime.realtime()})"
        )
        assert (waiting := run_scoring(workspace)).seq is None
        assert waiting.waiting == isolated + 1
        workspace.graph.run(
            "MATCH (a:Account {id: 9001}), (b:Account {id: $id}) "
            "CREATE (a)-[:PAID {created_at: datetime.realtime()}]->(b)",
            id=int(grown.first.nodes[0]),
        )
        report = run_scoring(workspace)
        assert report.waiting <= isolated
        run = last_run(workspace)
        assert run.rule == "EdgeEx"
        assert run.threshold == run.threshold_edge
        assert run.effective_calibration < run.n_calibration
        (evaluated,) = [row for row in stored(workspace) if row.node_key == "i:9001"]
        assert (evaluated.seq, evaluated.degree) == (run.seq, 1)


@postgresql_later
def test_too_few_calibration_nodes_give_full_sets_and_say_so(grown):
    settings = grown.workspace.settings
    strict = settings.model_copy(
        update={"conformal": settings.conformal.model_copy(update={"alpha": 0.01})}
    )
    with open_workspace(strict) as workspace:
        trained = run_training(workspace)
        assert trained.calibration < 99
        report = run_scoring(workspace)
        assert report.run.threshold is None
        assert report.sizes == {len(trained.classes): report.evaluated}
        assert any("99 are needed for 99 %" in note for note in report.run.notes)


@postgresql_later
def test_a_node_whose_class_is_known_on_arrival_needs_no_prediction(scored):
    workspace = scored.workspace
    workspace.graph.run(
        "MATCH (o:Account) WITH o LIMIT 1 CREATE (:Account {id: 9002, features: o.features, "
        "kind: 'retail', created_at: datetime.realtime()})"
    )
    report = run_scoring(workspace)
    assert (report.seq, report.already_known) == (None, 1)


@postgresql_later
def test_scoring_without_a_model_says_what_to_type(grown):
    with pytest.raises(ModelError, match="ringfence train"):
        run_scoring(grown.workspace)


@postgresql_later
def test_a_tampered_weights_file_is_refused(trained):
    workspace = trained.workspace
    (path,) = workspace.models.glob("*/weights.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    with pytest.raises(ModelError, match="hash differs"):
        run_scoring(workspace)


@postgresql_later
def test_a_graph_without_labelled_nodes_is_refused(grown):
    grown.workspace.graph.run("MATCH (n:Account) REMOVE n.kind")
    with pytest.raises(ModelError, match="no node with a known class"):
        run_training(grown.workspace)


def test_only_one_process_works_on_a_project(trained):
    workspace = trained.workspace
    for work in (run_training, run_scoring):
        with workspace.writer(), pytest.raises(LeaseHeld, match="is working on project"):
            work(workspace)
    assert run_scoring(workspace).seq == 1  # released again


def test_a_store_older_than_the_graph_is_refused(scored):
    workspace = scored.workspace
    with workspace.store.transaction() as connection:  # as if restored from an old backup
        connection.execute(update(tables.lease).values(token=0))
    with pytest.raises(StoreError, match="older than the graph"):
        run_scoring(workspace)


@postgresql_later
def test_without_migrations_nothing_runs(settings):
    with open_workspace(settings) as workspace, pytest.raises(StoreError, match="migrate"):
        run_scoring(workspace)


def test_the_chain_covers_training_runs_and_audits_and_finds_an_edit(scored):
    workspace = scored.workspace
    run_audit(workspace)
    with workspace.writer() as writer, workspace.store.transaction() as connection:
        kinds = [
            json.loads(row.body)["kind"]
            for row in connection.execute(select(tables.audit).order_by(tables.audit.c.n))
        ]
        assert kinds == ["trained", "decided", "applied", "marked", "audited", "marked", "alarms"]
        assert chain.first_broken(connection, "test", writer.key) is None
        assert chain.first_broken(connection, "test", b"another key") == 1


@postgresql_later
def test_the_same_seed_gives_the_same_model_and_sets(trained):
    workspace = trained.workspace
    (first,) = workspace.models.iterdir()
    second = run_training(workspace).version
    assert first.name != second
    assert first.name.split("-")[1] == second.split("-")[1]


WHEN_MADE = "MATCH (n:Account) RETURN collect([n.id, n.created_at]) AS made"
AS_IT_WAS_MADE = "UNWIND $made AS of MATCH (n:Account {id: of[0]}) SET n.created_at = of[1]"


def weights_digest(workspace, **settings):
    changed = with_settings(workspace, "model", **settings)
    with open_workspace(changed) as opened:
        return run_training(opened).version.split("-")[1]


@postgresql_later
@pytest.mark.parametrize("batch_size", [None, 32])
def test_the_order_in_which_nodes_are_read_does_not_change_the_weights(grown, batch_size):
    workspace, first = grown.workspace, grown.first
    nodes = first.nodes
    first_read = weights_digest(workspace, batch_size=batch_size)
    (made,) = workspace.graph.read(WHEN_MADE)
    bulk.delete_all_nodes(workspace.graph)
    shuffled = np.random.default_rng(1).permutation(nodes)
    load_batch(
        workspace.graph, grown.sample, replace(first, nodes=shuffled), grown.labelled, lambda *_: 0
    )
    workspace.graph.run(AS_IT_WAS_MADE, made=made["made"])  # the latest nodes end training
    migrate.migrate_graph(workspace.graph)
    assert weights_digest(workspace, batch_size=batch_size) == first_read
    reordered = mirrors.load(workspace.mirror, mirror_identity(workspace.graph, workspace.mapping))
    assert list(reordered.keys.take(range(5))) != [encode_key(int(key)) for key in nodes[:5]]


@postgresql_later
def test_naive_scores_do_not_move_while_the_graph_grows(trained):
    workspace = trained.workspace
    thresholds = []
    for batch in [None, *trained.later]:
        if batch is not None:
            trained.arrive(batch)
        thresholds.append(run_scoring(workspace).run)
    assert len({run.threshold_naive for run in thresholds}) == 1
    assert len({run.threshold_node for run in thresholds}) == 3
    assert np.isfinite([run.threshold for run in thresholds]).all()


def with_settings(workspace, section, **values):
    settings = workspace.settings
    part = getattr(settings, section).model_copy(update=values)
    return settings.model_copy(update={section: part})


@postgresql_later
def test_drift_weights_are_used_and_recorded_with_the_run(trained):
    plain = trained.workspace
    with open_workspace(
        with_settings(plain, "conformal", drift_half_life_days=0.00001, calibration_set="growing")
    ) as workspace:
        report = run_scoring(workspace)
        row = last_run(workspace)
        assert row.effective_calibration < row.n_calibration
        assert any("count half after 1e-05 days" in note for note in report.run.notes)
        assert any("drift costs the promise at most" in note for note in report.run.notes)
        assert "drift costs the promise at most" in promise_of_run(report.run)
    shifted = {"drift_half_life_days": 30.0, "calibration_set": "growing", "weights": "shift"}
    with open_workspace(with_settings(plain, "conformal", **shifted)) as workspace:
        run_training(workspace, promote="weights by degree and age: no theorem")
        trained.arrive(trained.later[0])
        notes = run_scoring(workspace).run.notes
        assert any("count half after 30 days" in note for note in notes)
        assert not any("drift costs the promise" in note for note in notes)


@postgresql_later
def test_a_large_graph_can_be_trained_in_batches(grown):
    with open_workspace(
        with_settings(grown.workspace, "model", batch_size=32, max_epochs=10)
    ) as workspace:
        assert run_training(workspace).epochs <= 10
        assert run_scoring(workspace).evaluated > 0


@postgresql_later
@pytest.mark.parametrize("network", ["SAGE", "GAT", "APPNP", "MLP"])
def test_every_network_runs_the_line(grown, network):
    with open_workspace(
        with_settings(grown.workspace, "model", network=network, max_epochs=5)
    ) as workspace:
        assert run_training(workspace).network == network
        assert run_scoring(workspace).evaluated > 0


@postgresql_later
def test_an_unknown_network_is_refused_with_those_that_exist(grown):
    with (
        open_workspace(with_settings(grown.workspace, "model", network="GNC")) as workspace,
        pytest.raises(ConfigError, match="gcn, gat, appnp, sage, mlp"),
    ):
        run_training(workspace)
