"""Why this set: answers on a real project equal those of a graph that was changed for real."""

import json

import pytest

from ringfence.connector.keys import decode_key
from ringfence.connector.store import predictions
from ringfence.jobs.cli.console import _plain_value
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import run_explain


@pytest.mark.parametrize("sql_url", ["sqlite"], indirect=True)
def test_reasons_of_a_node_are_ranked_deterministic_and_change_nothing(grown):
    workspace = grown.workspace
    run_training(workspace)
    run_scoring(workspace)
    before = predictions.evaluated_keys(workspace.store, workspace.project)
    key = next(
        key
        for key in sorted(before)
        if workspace.graph.read(
            "MATCH (n:Account {id: $id})--(m:Account) RETURN count(DISTINCT m) AS near",
            id=decode_key(key),
        )[0]["near"]
        >= 3
    )
    files = sorted((file, file.stat().st_mtime_ns) for file in workspace.folder.rglob("*"))
    told = run_explain(workspace, key, why=True)
    why = told.reasons
    recorded = {one.class_: one.p for one in told.p_values}
    # nothing came since the run: what is asked about is what was decided
    assert dict(zip(why.classes, why.p_values, strict=True)) == pytest.approx(recorded)
    assert set(why.classes_in_set) == set(told.classes)
    assert why.asked == why.neighbours == told.degree
    assert {one.kind for one in why.reasons} == {"neighbour", "column"}
    assert any(one.moved > 0 for one in why.reasons)
    flips = [bool(one.enters or one.leaves) for one in why.reasons]
    assert flips == sorted(flips, reverse=True)
    assert run_explain(workspace, key, why=True).reasons == why
    assert json.loads(json.dumps(told.as_json(), default=_plain_value))["why"]["asked"] > 0
    assert sorted((f, f.stat().st_mtime_ns) for f in workspace.folder.rglob("*")) == files
    assert predictions.evaluated_keys(workspace.store, workspace.project) == before
