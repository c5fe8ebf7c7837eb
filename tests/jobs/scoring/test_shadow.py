"""A candidate in the shadow of the version in use: same nodes, other sets, nothing harmed."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from ringfence.connector import fault_points
from ringfence.connector.store import tables
from ringfence.connector.store.shadow.consulted import consulted_runs
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.promotion import run_promotion
from ringfence.jobs.lifecycle.versions import read_versions
from ringfence.jobs.project.model_files import WEIGHTS
from ringfence.jobs.scoring import shadow
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.status import read_status
from tests.project_copies import Stage, load_first, sample_parts, starts_from
from tests.stores import sqlite


def with_shadow(workspace, **values):
    settings = workspace.settings
    model = settings.model.model_copy(update={"shadow": True, "max_epochs": 8, **values})
    return replace(workspace, settings=settings.model_copy(update={"model": model}))


def train_candidate(workspace, sample):
    """The sample with an active version, a run, and a candidate of another seed."""
    load_first(sample_parts(workspace, sample))
    run_training(with_shadow(workspace))
    assert run_scoring(with_shadow(workspace)).shadow is None  # there is no candidate yet
    run_training(with_shadow(workspace, seed=5))


pytestmark = [sqlite, starts_from(Stage("shadowed", "migrated", train_candidate))]


@pytest.fixture
def shadowing(trained):
    """The project with a candidate, `[model] shadow = true`, and the names of both versions."""
    versions = read_versions(trained.workspace.store, "test").versions
    assert [version.state for version in versions] == ["active", "candidate"]
    return with_shadow(trained.workspace), *(version.version for version in versions)


def rows_of(workspace, table):
    with workspace.store.reading() as connection:
        return list(connection.execute(select(table)))


def in_graph(workspace):
    rows = workspace.graph.read(
        "MATCH (n)-[e:EVALUATED]->(r:RingfenceRun) RETURN n.id AS id, r.model AS model, e.size AS s"
    )
    return {(row["id"], row["model"], row["s"]) for row in rows}


def test_a_candidate_scores_the_same_nodes_and_its_sets_stay_in_sql(trained, shadowing):
    workspace, first, second = shadowing
    trained.arrive(trained.later[0])
    done = run_scoring(workspace)
    assert (done.shadow.version, done.shadow.sets) == (second, done.evaluated)
    assert done.as_json()["shadow"]["sets"] == done.evaluated
    sets = rows_of(workspace, tables.shadow_set)
    predicted = {row.node_key: row for row in rows_of(workspace, tables.prediction)}
    assert {row.node_key for row in sets} == {
        key for key, row in predicted.items() if row.seq == done.seq
    }
    assert any(row.p_values != predicted[row.node_key].p_values for row in sets)
    assert {model for _, model, _ in in_graph(workspace)} == {first}

    trained.reveal(trained.later[0].nodes)
    run_audit(workspace)
    versions = read_versions(workspace.store, "test").versions
    candidate = next(version for version in versions if version.shadow)
    known = [row for row in rows_of(workspace, tables.shadow_set) if row.covered is not None]
    assert (candidate.version, candidate.shadow.known) == (second, len(known) > 0 and len(known))
    assert candidate.shadow.coverage == sum(row.covered for row in known) / len(known)
    assert "in force" in candidate.shadow.words
    sections = read_card(workspace.store, "test", second).sections
    assert any(section.title.startswith("In the shadow") for section in sections)
    assert read_status(workspace.store, "test").as_json()["shadows"][0]["version"] == second
    assert run_verification(workspace).problems == ()

    run_promotion(workspace, second, "smaller sets")
    assert consulted_runs(workspace.store, "test", second) == {done.seq}
    trained.arrive(trained.later[1])
    after = run_scoring(workspace)
    assert (after.run.model, after.shadow) == (second, None)  # no candidate is left
    joined = [row for row in rows_of(workspace, tables.joined) if row.version == second]
    assert done.seq not in {row.evaluated_seq for row in joined}
    assert run_verification(workspace).problems == ()


def test_a_shadow_part_that_fails_leaves_the_run_whole(trained, shadowing, monkeypatch):
    workspace, first, second = shadowing
    trained.arrive(trained.later[0])

    def fail(*_args, **_more):
        raise MemoryError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(shadow, "evaluate_nodes", fail)
        done = run_scoring(workspace)
    assert (done.run.model, done.shadow.failed) == (first, "MemoryError; please report it")
    weights = workspace.models / second / WEIGHTS
    kept = weights.read_bytes()
    weights.write_bytes(kept[:-1] + b"\0")
    trained.arrive(trained.later[1])
    again = run_scoring(workspace)
    assert "its hash differs" in again.shadow.failed
    weights.write_bytes(kept)
    states = {row.seq: row.state for row in rows_of(workspace, tables.run)}
    assert set(states.values()) == {"applied"}
    assert len(rows_of(workspace, tables.shadow_run)) == 2
    assert rows_of(workspace, tables.shadow_set) == []
    words = next(iter(read_status(workspace.store, "test").shadows)).words
    assert words.startswith(f"no shadow sets: run {again.seq} failed")
    assert run_verification(workspace).problems == ()


@pytest.mark.parametrize("place", fault_points.SHADOW_NAMES)
def test_a_crash_in_the_shadow_leaves_the_run_closed(trained, shadowing, monkeypatch, place):
    workspace, _, _ = shadowing
    trained.arrive(trained.later[0])

    def die(name):
        if name == place:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reach", die)
        with pytest.raises(KeyboardInterrupt):
            run_scoring(workspace)
    assert {row.state for row in rows_of(workspace, tables.run)} == {"applied"}
    assert rows_of(workspace, tables.shadow_set) == []
    trained.arrive(trained.later[1])
    done = run_scoring(workspace)
    assert (done.recovered, done.shadow.failed, done.shadow.sets) == ((), None, done.evaluated)
    assert run_verification(workspace).problems == ()
