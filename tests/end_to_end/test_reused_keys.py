"""An evaluated node is deleted and another gets its key: it is a node of its own, evaluated once.

The same on graphs with creation times and without them, after crashes, repairs and audits.
"""

import contextlib
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from ringfence.connector import fault_points
from ringfence.connector.keys import decode_key, record_key, split_record_key
from ringfence.connector.neo4j import compare
from ringfence.connector.store import predictions, tables
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import WorklistFilter, whole_worklist
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring import evaluation_flags
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.views.explain import describe_class, record_of, run_explain
from ringfence.jobs.worklist.table import classes_to_choose
from tests.forms import both_forms, typed_as_well
from tests.stores import sqlite

DELETE = "UNWIND $keys AS key MATCH (n:Account {id: key}) DETACH DELETE n"
CREATE = """
MATCH (like:Account {kind: 'mule'}) WITH like ORDER BY like.id LIMIT 1
UNWIND $keys AS key
WITH key, like, datetime.realtime() AS now
CREATE (n:Account {id: key, features: like.features, created_at: now})
CREATE (n)-[:PAID {created_at: now}]->(like)
"""
SHOWN = """
MATCH (n:Account) WHERE n.id IN $keys
OPTIONAL MATCH (n)-[e:EVALUATED]->()
RETURN n.id AS key, collect(e.key) AS evaluated
"""


def evaluated(workspace, count=4):
    """The first keys of the first run, with their values in the graph."""
    keys = sorted(predictions.evaluated_keys(workspace.store, workspace.project))[:count]
    return keys, [decode_key(key) for key in keys]


def reuse(workspace, values):
    """Delete nodes and create others with their keys, like a mule that is there."""
    workspace.graph.run(DELETE, keys=values)
    workspace.graph.run(CREATE, keys=values)


def shown(workspace, values):
    """Which EVALUATED each of the nodes carries, without the project's name."""
    rows = workspace.graph.read(SHOWN, keys=values)
    prefix = f"{workspace.project}/"
    return {row["key"]: [key.removeprefix(prefix) for key in row["evaluated"]] for row in rows}


def stored(workspace, keys):
    rows = predictions.some_predictions(workspace.store, workspace.project, keys)
    return {row.node_key: row for row in rows}


def worklist_keys(workspace):
    """Every node on some class's list."""
    queries = ProjectQueries(workspace.store, workspace.project)
    return {
        node.node_key
        for class_ in classes_to_choose(queries)
        for node in whole_worklist(queries, WorklistFilter(class_))
    }


def all_keys(workspace):
    return sorted(predictions.evaluated_keys(workspace.store, workspace.project))


@typed_as_well
def test_a_node_with_a_reused_key_gets_its_own_set_once(scored, monkeypatch):
    workspace = scored.workspace
    keys, values = evaluated(workspace)
    before = stored(workspace, keys)
    reuse(workspace, values)

    with monkeypatch.context() as blind:  # control: by keys alone the dead nodes' sets would fit
        blind.setattr(compare, "belongs_to", lambda *_: True)
        assert run_reconcile(workspace, repair=False).projections == {"not projected": 4}
    done = run_reconcile(workspace, repair=True)  # the nightly repair comes first
    assert done.projections == {"node gone": 4}
    assert shown(workspace, values) == {value: [] for value in values}
    assert run_verification(workspace).problems == ()

    report = run_scoring(workspace)
    assert (report.evaluated, report.keys_reused) == (4, 4)
    assert any(note.startswith("4 keys were used again") for note in report.run.notes)
    again = [record_key(key, 1) for key in keys]
    assert shown(workspace, values) == {v: [a] for v, a in zip(values, again, strict=True)}
    mine = stored(workspace, again)
    for key in keys:
        new = mine[record_key(key, 1)]
        assert new.created_ns > before[key].created_ns
        assert new.evidence != before[key].evidence
    assert run_scoring(workspace).seq is None  # once
    assert run_reconcile(workspace, repair=True).projections == {}
    assert run_verification(workspace).problems == ()
    assert stored(workspace, keys) == {key: replace(before[key], in_graph=False) for key in keys}
    newest, first = run_explain(workspace, str(values[0])), run_explain(workspace, f"0@{keys[0]}")
    assert (newest.typed_key, newest.in_graph) == (again[0], True)
    assert (first.typed_key, first.in_graph, first.neighbours) == (keys[0], False, ())
    assert ("another node of this key", f"evaluated in run 1: 0@{keys[0]}") in record_of(newest)
    assert describe_class(first).endswith("another one has its key now.")
    listed = worklist_keys(workspace)
    assert not set(keys) & listed
    assert set(again) <= listed

    reuse(workspace, values[:2])  # a third node of two keys
    third = run_scoring(workspace)
    assert (third.evaluated, third.keys_reused) == (2, 2)
    assert shown(workspace, values[:1]) == {values[0]: [record_key(keys[0], 2)]}
    gone = stored(workspace, again)
    assert [gone[key].in_graph for key in again] == [False, False, True, True]
    assert run_reconcile(workspace, repair=True).projections == {}
    assert run_verification(workspace).problems == ()

    reuse(workspace, values[3:])  # control: by keys alone it would never be due
    with monkeypatch.context() as blind:
        same = lambda _mirror, rows, *_: rows >= 0  # noqa: E731
        blind.setattr(evaluation_flags, "_is_same_node", same)
        assert run_scoring(workspace).seq is None


@typed_as_well
def test_an_audit_counts_a_class_under_the_node_that_has_it(scored):
    workspace = scored.workspace
    keys, values = evaluated(workspace, 3)
    reuse(workspace, values)
    known = "MATCH (n:Account {id: $key}) SET n.kind = 'mule'"
    workspace.graph.run(known, key=values[0])  # before its own evaluation: it needs none
    run_audit(workspace)
    assert stored(workspace, keys)[keys[0]].label is None
    assert run_scoring(workspace).evaluated == 2
    workspace.graph.run(known, key=values[1])
    assert run_audit(workspace).newly_known == 1
    assert stored(workspace, keys)[keys[1]].label is None
    assert stored(workspace, [record_key(keys[1], 1)])[record_key(keys[1], 1)].label == "mule"
    assert run_reconcile(workspace, repair=True).projections == {"node gone": 1}
    assert run_verification(workspace).problems == ()
    scored.arrive(scored.later[0])  # the class joins the calibration under its own key
    run_scoring(workspace)
    assert run_verification(workspace).problems == ()


@both_forms
@sqlite
def test_an_import_that_rewrites_creation_times_scores_nothing_twice(scored):
    workspace = scored.workspace
    before, in_graph = all_keys(workspace), len(all_keys(workspace))
    workspace.graph.run(
        "MATCH (n:Account)-[:EVALUATED]->() SET n.created_at = n.created_at + duration('PT1S')"
    )
    scored.arrive(scored.later[0])
    report = run_scoring(workspace)
    noted = report.changed_times
    assert report.evaluated == 100
    assert report.keys_reused == 0
    run_reconcile(workspace, repair=True)  # reads all of them
    scored.arrive(scored.later[1])
    later = run_scoring(workspace)
    assert (later.evaluated, later.keys_reused) == (100, 0)
    assert noted + later.changed_times > 0
    assert len(all_keys(workspace)) == in_graph + 200
    assert set(before) < set(all_keys(workspace))
    assert not any(split_record_key(key)[1] for key in all_keys(workspace))
    # what was damaged on such a node is still repaired
    workspace.graph.run(
        "MATCH (n:Account)-[e:EVALUATED {key: $key}]->(), (n)-[m:MAY_BE]->() DELETE m",
        key=f"{workspace.project}/{before[0]}",
    )
    assert run_reconcile(workspace, repair=True).projections == {"set differs": 1}
    assert run_verification(workspace).problems == ()


class Killed(BaseException):
    """Stands for a process that dies."""


@typed_as_well
def test_a_crash_between_decide_and_apply_keeps_sets_with_their_nodes(scored, monkeypatch):
    workspace = scored.workspace
    keys, values = evaluated(workspace)
    reuse(workspace, values)

    def die(name):
        if name == "decided":
            raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(fault_points, "reach", die)
        with pytest.raises(Killed):
            run_scoring(workspace)
    again = [record_key(key, 1) for key in keys]
    assert shown(workspace, values) == {value: [] for value in values}
    reuse(workspace, values[:1])  # gone before the replay: its set must not reach the third node
    report = run_scoring(workspace)
    assert report.recovered == (2,)
    assert (report.evaluated, report.keys_reused) == (1, 1)
    expected = {values[0]: [record_key(keys[0], 2)]}
    expected |= {v: [a] for v, a in zip(values[1:], again[1:], strict=True)}
    assert shown(workspace, values) == expected
    assert not stored(workspace, again)[again[0]].in_graph
    assert run_scoring(workspace).seq is None
    assert run_verification(workspace).problems == ()


@both_forms
@sqlite
def test_a_moved_node_keeps_its_set_when_another_takes_its_old_key(scored):
    workspace = scored.workspace
    keys, values = evaluated(workspace, 1)
    workspace.graph.run("MATCH (n:Account {id: $key}) SET n.id = 1000000", key=values[0])
    workspace.graph.run(CREATE, keys=values)
    report = run_scoring(workspace)
    assert (report.evaluated, report.evaluated_before) == (1, 1)
    assert shown(workspace, [*values, 1000000]) == {
        values[0]: [record_key(keys[0], 1)],
        1000000: [keys[0]],
    }
    run_reconcile(workspace, repair=True)
    assert shown(workspace, [1000000]) == {1000000: [keys[0]]}


@contextlib.contextmanager
def without_times(workspace):
    """The project on a graph whose accounts have no creation time."""
    graph = workspace.settings.graph
    if graph.nodes:
        nodes = [node.model_copy(update={"created_at": None}) for node in graph.nodes]
        graph = graph.model_copy(update={"nodes": nodes})
    else:
        graph = graph.model_copy(update={"created_at": None})
    settings = workspace.settings.model_copy(update={"graph": graph})
    with open_workspace(settings) as opened:
        yield opened


@both_forms
@sqlite
def test_without_creation_times_a_node_is_another_once_its_key_was_seen_gone(grown):
    from ringfence.jobs.training.train import run_training

    with without_times(grown.workspace) as workspace:
        run_training(workspace)
        run_scoring(workspace)
        keys, values = evaluated(workspace)
        workspace.graph.run(DELETE, keys=values)
        grown.arrive(grown.later[0])
        assert run_scoring(workspace).evaluated == 100
        assert not any(row.in_graph for row in stored(workspace, keys).values())
        workspace.graph.run(CREATE, keys=values)
        assert run_reconcile(workspace, repair=True).projections == {}
        report = run_scoring(workspace)
        assert (report.evaluated, report.keys_reused) == (4, 4)
        assert shown(workspace, values) == {
            v: [record_key(key, 1)] for key, v in zip(keys, values, strict=True)
        }
        assert run_scoring(workspace).seq is None
        assert run_reconcile(workspace, repair=True).projections == {}
        assert run_verification(workspace).problems == ()


@both_forms
@sqlite
def test_predictions_of_older_versions_count_as_those_of_the_nodes_with_their_keys(scored):
    workspace = scored.workspace
    _, values = evaluated(workspace)
    with workspace.store.transaction() as connection:
        connection.execute(update(tables.prediction).values(created_ns=None, evidence=None))
        rows = connection.execute(select(tables.prediction.c.created_ns)).scalars()
        assert set(rows) == {None}
    assert any("created_ns" in problem for problem in run_verification(workspace).problems)
    reuse(workspace, values)
    assert run_scoring(workspace).seq is None
