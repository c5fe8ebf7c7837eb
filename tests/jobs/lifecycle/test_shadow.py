"""A candidate in the shadow of the version in use: same nodes, other sets, nothing harmed."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from ringfence.connector import fault_points
from ringfence.connector.store import tables
from ringfence.connector.store.shadow.consulted import consulted_runs
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle import shadow
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.promotion import run_promotion
from ringfence.jobs.lifecycle.versions import read_versions
from ringfence.jobs.project.model_files import WEIGHTS
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.status import read_status
from tests.stores import sqlite

pytestmark = sqlite


@pytest.fixture
def shadowing(grown):
    """The sample with an active version and a candidate, and `[model] shadow = true`."""
    settings = grown.workspace.settings
    own = settings.model.model_copy(update={"shadow": True, "max_epochs": 8})
    workspace = replace(grown.workspace, settings=settings.model_copy(update={"model": own}))
    first = run_training(workspace).version
    assert run_scoring(workspace).shadow is None  # there is no candidate yet
    other = own.model_copy(update={"seed": 5})
    changed = settings.model_copy(update={"model": other})
    second = run_training(replace(workspace, settings=changed)).version
    return workspace, first, second


def rows_of(workspace, table):
    with workspace.store.reading() as connection:
        return list(connection.execute(select(table)))


def in_graph(workspace):
    found = workspace.graph.read(
        "MATCH (n)-[e:EVALUATED]->(r:RingfenceRun) RETURN n.id AS id, r.model AS model, e.size AS s"
    )
    return {(row["id"], row["model"], row["s"]) for row in found}


def test_a_candidate_scores_the_same_nodes_and_its_sets_stay_in_sql(grown, shadowing):
    workspace, first, second = shadowing
    grown.arrive(grown.later[0])
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

    grown.reveal(grown.later[0].nodes)
    run_audit(workspace)
    found = next(one for one in read_versions(workspace.store, "test").versions if one.shadow)
    known = [row for row in rows_of(workspace, tables.shadow_set) if row.covered is not None]
    assert (found.version, found.shadow.known) == (second, len(known) > 0 and len(known))
    assert found.shadow.coverage == sum(row.covered for row in known) / len(known)
    assert "in force" in found.shadow.words
    assert any(one.title.startswith("In the shadow") for one in read_card(
        workspace.store, "test", second).sections)  # fmt: skip
    assert read_status(workspace.store, "test").as_json()["shadows"][0]["version"] == second
    assert run_verification(workspace).problems == ()

    run_promotion(workspace, second, "smaller sets")
    assert consulted_runs(workspace.store, "test", second) == {done.seq}
    grown.arrive(grown.later[1])
    after = run_scoring(workspace)
    assert (after.run.model, after.shadow) == (second, None)  # no candidate is left
    joined = [row for row in rows_of(workspace, tables.joined) if row.version == second]
    assert done.seq not in {row.evaluated_seq for row in joined}
    assert run_verification(workspace).problems == ()


def test_a_shadow_part_that_fails_leaves_the_run_whole(grown, shadowing, monkeypatch):
    workspace, first, second = shadowing
    grown.arrive(grown.later[0])

    def fail(*_args, **_more):
        raise MemoryError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(shadow, "evaluate_rows", fail)
        done = run_scoring(workspace)
    assert (done.run.model, done.shadow.failed) == (first, "MemoryError; please report it")
    weights = workspace.models / second / WEIGHTS
    kept = weights.read_bytes()
    weights.write_bytes(kept[:-1] + b"\0")
    grown.arrive(grown.later[1])
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
def test_a_crash_in_the_shadow_leaves_the_run_closed(grown, shadowing, monkeypatch, place):
    workspace, _, _ = shadowing
    grown.arrive(grown.later[0])

    def die(name):
        if name == place:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reach", die)
        with pytest.raises(KeyboardInterrupt):
            run_scoring(workspace)
    assert {row.state for row in rows_of(workspace, tables.run)} == {"applied"}
    assert rows_of(workspace, tables.shadow_set) == []
    grown.arrive(grown.later[1])
    done = run_scoring(workspace)
    assert (done.recovered, done.shadow.failed, done.shadow.sets) == ((), None, done.evaluated)
    assert run_verification(workspace).problems == ()
