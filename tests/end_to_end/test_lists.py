"""Lists through run, SQL, graph, chain, triage, audit, repair and replay."""

import json

import numpy as np
import pytest
from sqlalchemy import select, text

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.store import tables
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.worklist.listed_nodes import read_listed_nodes, read_listed_runs
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.config.conformal import ListSettings
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.list_trade_off import SHARES, run_list_trade_off
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.worklist.triage import read_triage, triage_csv
from tests.stores import sqlite

IN_GRAPH = (
    "MATCH (n:Account)-[e:EVALUATED]->(r:RingfenceRun {project: $project}) "
    "WHERE $list IN e.lists RETURN n.id AS id"
)


def with_lists(workspace, *lists):
    made = [ListSettings(**values) for values in lists]
    return workspace.settings.model_copy(update={"lists": made})


def class_of(workspace):
    with workspace.store.reading() as connection:
        manifest = json.loads(connection.execute(select(tables.model.c.manifest)).scalars().first())
    return max(manifest["classes"], key=manifest["data"]["classes"].get)


def two_lists(trained, share=0.3):
    common = class_of(trained.workspace)
    return with_lists(
        trained.workspace,
        {"name": "investigate", "class": common, "may_be_wrong": share},
        {"name": "clear", "not": common, "may_be_wrong": share, "per": "stream"},
    )


def listed(workspace, name):
    nodes = read_listed_nodes(workspace.store, workspace.project)
    return sorted(node.node_key for node in nodes if node.name == name)


@sqlite
def test_a_run_decides_seals_and_projects_its_lists_once(trained):
    with open_workspace(two_lists(trained)) as workspace:
        run_scoring(workspace)
        (run,) = read_listed_runs(workspace.store, workspace.project)
        assert [facts.terms.name for facts in run.lists] == ["investigate", "clear"]
        keys = listed(workspace, "investigate")
        assert len(keys) == run.lists[0].listed > 0
        rows = workspace.graph.read(IN_GRAPH, project=workspace.project, list="investigate")
        assert sorted(row["id"] for row in rows) == sorted(decode_key(key) for key in keys)
        assert run_verification(workspace, with_py2neo=True).problems == ()
        trained.arrive(trained.later[0])
        run_scoring(workspace)
        assert set(keys) <= set(listed(workspace, "investigate"))
        assert len(read_listed_runs(workspace.store, workspace.project)) == 2
        trained.reveal(np.arange(trained.sample.nodes))
        run_audit(workspace)
        total = next(row for row in audit_lists(workspace.store, "test") if row.slice == "total")
        assert (total.runs, total.known) == (2, total.listed)
        assert total.low == total.high == total.pooled
        assert run_verification(workspace).problems == ()


@sqlite
def test_triage_shows_every_node_of_a_run_in_one_pile(trained):
    with open_workspace(two_lists(trained)) as workspace:
        report = run_scoring(workspace)
        queries = ProjectQueries(workspace.store, workspace.project)
        piles = read_triage(queries)
        assert sum(map(piles.count, ("investigate", "clear", "open"))) == report.evaluated
        assert piles.count("investigate") == len(listed(workspace, "investigate"))
        assert len(list(triage_csv(piles.nodes))) == report.evaluated + 1
        assert piles.as_json()["lists"][0]["may_be_wrong"] == 0.3
        for pile in (None, "investigate", "clear", "open"):
            some = read_triage(queries, pile=pile, limit=7)
            of_pile = [node for node in piles.nodes if pile in (None, node.pile)]
            assert list(some.nodes) == of_pile[:7]
            assert (some.counts, some.on_both) == (piles.counts, piles.on_both)
        with pytest.raises(ConfigError, match="run 9 is none that decided lists"):
            read_triage(queries, 9)


@sqlite
def test_without_lists_nothing_is_listed_and_triage_says_what_to_do(trained):
    run_scoring(trained.workspace)
    assert read_listed_runs(trained.workspace.store, "test") == []
    assert audit_lists(trained.workspace.store, "test") == []
    with pytest.raises(ConfigError, match="decided lists"):
        read_triage(ProjectQueries(trained.workspace.store, "test"))


@sqlite
def test_a_list_about_an_unknown_class_is_refused_before_anything_is_decided(trained):
    unknown = {"name": "investigate", "class": "unicorn", "may_be_wrong": 0.2}
    with open_workspace(with_lists(trained.workspace, unknown)) as workspace:
        with pytest.raises(ConfigError, match="class 'unicorn', which the model"):
            run_scoring(workspace)
        assert workspace.graph.read("MATCH (r:RingfenceRun) RETURN r") == []


@sqlite
def test_a_changed_promise_is_a_new_list_and_the_old_one_is_still_audited(trained):
    with open_workspace(two_lists(trained)) as workspace:
        run_scoring(workspace)
    trained.arrive(trained.later[0])
    with open_workspace(two_lists(trained, share=0.4)) as workspace:
        run_scoring(workspace)
        totals = [row for row in audit_lists(workspace.store, "test") if row.slice == "total"]
        assert [(row.terms.may_be_wrong, row.runs) for row in totals] == [
            (0.3, 1), (0.3, 1), (0.4, 1), (0.4, 1),
        ]  # fmt: skip
        assert run_verification(workspace).problems == ()


@sqlite
def test_edited_lists_are_found_in_both_stores_and_the_graph_is_repaired(trained):
    with open_workspace(two_lists(trained)) as workspace:
        run_scoring(workspace)
        workspace.graph.run("MATCH ()-[e:EVALUATED]->() WHERE e.lists IS NOT NULL WITH e LIMIT 1 "
                            "REMOVE e.lists")  # fmt: skip
        workspace.graph.run("MATCH ()-[e:EVALUATED]->() WHERE e.lists IS NULL WITH e LIMIT 1 "
                            "SET e.lists = ['clear', 'nobody']")  # fmt: skip
        assert len(run_verification(workspace).problems) >= 1
        assert run_reconcile(workspace, repair=True).projections["set differs"] >= 1
        assert run_verification(workspace).problems == ()
        key = listed(workspace, "investigate")[0]
        with workspace.store.engine.begin() as connection:
            connection.execute(
                text("UPDATE prediction SET lists = NULL WHERE node_key = :key"), {"key": key}
            )
        assert any("are on lists, but" in p for p in run_verification(workspace).problems)


@sqlite
def test_a_run_that_died_after_its_decision_is_replayed_with_its_lists(trained, monkeypatch):
    class Killed(Exception):
        pass

    def die(name):
        if name == "decided":
            raise Killed

    with open_workspace(two_lists(trained)) as workspace:
        with monkeypatch.context() as patch:
            patch.setattr(fault_points, "reach", die)
            with pytest.raises(Killed):
                run_scoring(workspace)
        keys = listed(workspace, "investigate")
        assert keys
        assert workspace.graph.read(IN_GRAPH, project="test", list="investigate") == []
        assert run_scoring(workspace).recovered == (1,)
        assert listed(workspace, "investigate") == keys
        rows = workspace.graph.read(IN_GRAPH, project="test", list="investigate")
        assert sorted(row["id"] for row in rows) == sorted(decode_key(key) for key in keys)
        assert run_verification(workspace).problems == ()


@sqlite
def test_a_list_is_measured_on_validation_nodes_without_evaluating_anybody(trained):
    with open_workspace(two_lists(trained)) as workspace:
        measured = run_list_trade_off(workspace, "investigate")
        assert [row.may_be_wrong for row in measured.rows] == sorted({*SHARES, 0.3})
        found = [row.found for row in measured.rows]
        assert found == sorted(found)
        assert 0 < found[-1] <= 1
        assert measured.as_json()["class_"] == class_of(trained.workspace)
        assert workspace.graph.read("MATCH (r:RingfenceRun) RETURN r") == []
        with pytest.raises(ConfigError, match="'later', which is no list"):
            run_list_trade_off(workspace, "later")
