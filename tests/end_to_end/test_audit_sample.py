"""The audit sample through run, SQL, graph, chain, worklist, audit, repair and retention."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select, text

from ringfence.connector.keys import decode_key
from ringfence.connector.store import runs, tables
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sample import SampleFilter, count_sample, read_sample
from ringfence.connector.store.worklist.sampled_nodes import AuditSample
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.report.pack import run_pack
from ringfence.jobs.retention.prune import run_prune
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.views.status import read_status
from ringfence.models.hashing import SAMPLE, draw_keys
from tests.stores import sqlite

IN_GRAPH = (
    "MATCH (n:Account)-[e:EVALUATED]->(r:RingfenceRun {project: $project}) "
    "WHERE e.sampled RETURN n.id AS id, r.seq AS seq"
)


def with_audit(workspace, **values):
    settings = workspace.settings
    return settings.model_copy(update={"audit": settings.audit.model_copy(update=values)})


def sampled(workspace):
    query = select(tables.prediction.c.node_key).where(tables.prediction.c.sampled.is_(True))
    with workspace.store.reading() as connection:
        return sorted(connection.execute(query).scalars())


def evaluated(workspace, seq):
    query = select(tables.prediction.c.node_key).where(tables.prediction.c.seq == seq)
    with workspace.store.reading() as connection:
        return list(connection.execute(query).scalars())


def seed_of(workspace):
    with workspace.store.reading() as connection:
        manifest = connection.execute(select(tables.model.c.manifest)).scalars().first()
    return node_seed(workspace.settings, json.loads(manifest))


def sample_rows(report):
    return [row for row in report.rows if row.slice == "sample"]


@sqlite
def test_a_run_draws_marks_seals_and_projects_its_sample(trained, tmp_path):
    with open_workspace(with_audit(trained.workspace, sample_nodes=7)) as workspace:
        run_scoring(workspace)
        drawn = sampled(workspace)
        assert drawn == draw_keys(evaluated(workspace, 1), seed_of(workspace), SAMPLE, 7)
        rows = workspace.graph.read(IN_GRAPH, project=workspace.project)
        assert sorted(row["id"] for row in rows) == sorted(decode_key(key) for key in drawn)
        assert run_verification(workspace, with_py2neo=True).problems == ()
        trained.arrive(trained.later[0])
        run_scoring(workspace)
        assert len(sampled(workspace)) == 14
        _reveal_by_key(trained, drawn)
        audited = run_audit(workspace)
        assert [(row.seq, row.name, row.evaluated, row.known) for row in sample_rows(audited)] == [
            (1, "", 7, 7), (1, "last 90 days", 7, 7),
            (2, "", 14, 7), (2, "last 90 days", 14, 7),
        ]  # fmt: skip
        queries = ProjectQueries(workspace.store, workspace.project)
        assert (count_sample(queries).nodes, count_sample(queries).unknown) == (14, 7)
        assert {node.seq for node in read_sample(queries, SampleFilter())} == {2}
        status = read_status(workspace.store, workspace.project).as_json()["sample"]
        assert (status["nodes"], status["unknown"]) == (14, 7)
        assert "please find out the class of 7" in status["words"]
        assert run_verification(workspace).problems == ()
        run_pack(workspace.settings, tmp_path / "audit.zip")
        with zipfile.ZipFile(tmp_path / "audit.zip") as pack:
            assert pack.read("tables/coverage-sample.csv").count(b"last 90 days") == 2


def _reveal_by_key(grown, keys):
    grown.reveal(np.array([int(decode_key(key)) for key in keys]))


@sqlite
def test_a_sample_larger_than_the_run_is_the_run_and_none_is_drawn_by_default(trained):
    run_scoring(trained.workspace)
    assert sampled(trained.workspace) == []
    assert sample_rows(run_audit(trained.workspace)) == []
    assert read_status(trained.workspace.store, "test").sample is None
    with open_workspace(with_audit(trained.workspace, sample_nodes=10**6)) as workspace:
        trained.arrive(trained.later[0])
        assert run_scoring(workspace).seq == 2
        assert sampled(workspace) == sorted(evaluated(workspace, 2))
        assert run_verification(workspace).problems == ()


@sqlite
def test_whoever_takes_a_node_out_of_the_sample_is_found_and_the_graph_is_repaired(trained):
    with open_workspace(with_audit(trained.workspace, sample_nodes=5)) as workspace:
        run_scoring(workspace)
        workspace.graph.run("MATCH ()-[e:EVALUATED]->() WHERE e.sampled WITH e LIMIT 1 "
                            "REMOVE e.sampled")  # fmt: skip
        workspace.graph.run("MATCH ()-[e:EVALUATED]->() WHERE e.sampled IS NULL WITH e LIMIT 2 "
                            "SET e.sampled = false")  # fmt: skip
        assert len(run_verification(workspace).problems) >= 2
        assert run_reconcile(workspace, repair=True).projections["set differs"] >= 2
        assert run_verification(workspace).problems == ()
        assert len(workspace.graph.read(IN_GRAPH, project="test")) == 5
        with workspace.store.engine.begin() as connection:
            swap = "UPDATE prediction SET sampled = NOT sampled WHERE node_key IN (:a, :b)"
            outside = next(k for k in evaluated(workspace, 1) if k not in sampled(workspace))
            connection.execute(text(swap), {"a": sampled(workspace)[0], "b": outside})
        problems = run_verification(workspace).problems
        assert any("sampled is not set at the 5 nodes" in problem for problem in problems)


@sqlite
def test_a_sample_that_a_program_chose_is_not_the_draw_although_it_is_sealed(trained, monkeypatch):
    decide = runs.decide

    def choose(writer, decision):
        chosen = tuple(sorted(decision.predictions.keys)[:5])
        return decide(writer, replace(decision, sample=AuditSample(5, chosen)))

    with open_workspace(with_audit(trained.workspace, sample_nodes=5)) as workspace:
        monkeypatch.setattr(runs, "decide", choose)
        run_scoring(workspace)
        (problem,) = run_verification(workspace).problems
        assert "somebody chose its nodes" in problem


@sqlite
@pytest.mark.slow
def test_retention_leaves_the_sample_and_its_rows(trained):
    period = {"keep_days": 1e-9, "keep_open_days": 1e-9, "sample_nodes": 9}
    with open_workspace(with_audit(trained.workspace, **period)) as workspace:
        run_scoring(workspace)
        drawn = sampled(workspace)
        _reveal_by_key(trained, drawn[:4])
        before = sample_rows(run_audit(workspace))
        assert run_prune(workspace).runs == (1,)
        assert sampled(workspace) == drawn
        assert sample_rows(run_audit(workspace)) == before
        _reveal_by_key(trained, drawn[4:])
        assert sample_rows(run_audit(workspace))[0].known == 9
        assert run_verification(workspace).problems == ()
