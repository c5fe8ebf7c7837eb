"""Why this set: answers on a real project equal those of a graph that was changed for real."""

import json
import sys
import types
from dataclasses import replace

import pytest
import torch

from ringfence.connector import extras
from ringfence.connector.errors import ConfigError
from ringfence.connector.keys import decode_key
from ringfence.connector.store import predictions
from ringfence.jobs.cli.commands.record.explain import _print_reasons
from ringfence.jobs.cli.console import _plain_value
from ringfence.jobs.dashboard.pages.why import require_an_answer
from ringfence.jobs.explanation.deadline import Deadline
from ringfence.jobs.explanation.find import find_reasons
from ringfence.jobs.explanation.reasons import MIN_EVIDENCE, Part, Reason, Reasons
from ringfence.jobs.project import session
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.checks.store import check_model
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import levels_of, run_explain
from ringfence.models.networks.pyg import GCNConv
from tests.stores import sqlite

MAX_EXPLAINED = 12


@sqlite
def test_reasons_of_a_node_are_ranked_deterministic_and_change_nothing(scored, monkeypatch):
    workspace = scored.workspace
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
    kinds = {one.part.kind for one in why.reasons}
    assert kinds == {"neighbour", "column", "relationship type"}
    assert any(one.moved > 0 for one in why.reasons)
    flips = [one.flips for one in why.reasons]
    assert flips == sorted(flips, reverse=True)
    assert run_explain(workspace, key, why=True).reasons == why
    for change in why.smallest:  # each was asked as a whole: it does what it says
        assert (change.p > change.level) == change.enters
    assert why.left_unasked == 0
    _time_is_over_at_each_step(workspace, told, monkeypatch)
    assert json.loads(json.dumps(told.as_json(), default=_plain_value))["why"]["asked"] > 0
    assert sorted((f, f.stat().st_mtime_ns) for f in workspace.folder.rglob("*")) == files
    assert predictions.evaluated_keys(workspace.store, workspace.project) == before


@sqlite
def test_every_node_has_a_reason_that_moves_its_odds_or_the_prior_speaks_alone(scored):
    """Also where the p-value of the likeliest class is at its end, and can't move."""
    workspace = scored.workspace
    keys = sorted(predictions.evaluated_keys(workspace.store, workspace.project))
    unmoved = 0
    for key in keys[:MAX_EXPLAINED]:
        why = run_explain(workspace, key, why=True).reasons
        moving = [one for one in why.reasons if one.strength > MIN_EVIDENCE]
        assert moving or "speaks alone (the prior)" in why.sentence, key
        assert why.sentence, key
        assert len(why.log_odds) == len(why.classes)
        best = why.likeliest
        unmoved += all(abs(one.p_values[best] - why.p_values[best]) < 1e-12 for one in why.reasons)
        for one in why.reasons:  # what is told of the odds is what the pass without it gives
            assert len(one.evidence) == len(why.classes)
    print(f"{unmoved} nodes where no p-value of the likeliest class moves")


def test_where_nothing_moves_the_odds_the_sentence_says_so():
    """The negative control: parts without evidence are no reasons."""
    still = Reason(Part("column", "age"), (1.0, 0.0), evidence=(0.0, 0.0))
    empty = Reasons("", "", ("mule", "retail"), (1.0, 0.0), (0.1, 0.1), ("mule",), 0, 0, (still,),
                    log_odds=(9.0, -9.0))  # fmt: skip
    assert "no single neighbour or column moves the odds of mule" in empty.sentence
    moving = replace(still, evidence=(-0.7, 0.7))
    told = replace(empty, reasons=(moving,)).sentence
    assert told == "against mule speaks most column age (odds divided by 2.01)"
    assert replace(empty, log_odds=()).sentence == ""


def _time_is_over_at_each_step(workspace, told, monkeypatch):
    """After loading; after two questions; while the smallest change is searched."""
    why, asked = told.reasons, (workspace, told.typed_key, told.run.model, levels_of(told))
    loaded = find_reasons(*asked, seconds=1e-9)
    assert (loaded.p_values, loaded.reasons, loaded.asked) == ((), (), 0)
    assert loaded.left_unasked == len(why.reasons)
    assert loaded.stopped == "the limit of 1e-09 s was over after loading the graph"
    with pytest.raises(ConfigError, match=f"none of {len(why.reasons)} questions"):
        require_an_answer(loaded)
    _print_reasons(loaded)  # no table of p-values that are not there
    for steps, left in ((3, len(why.reasons) - 2), (1 + len(why.reasons), 0)):
        over = iter([False] * steps)
        with monkeypatch.context() as patched:
            patched.setattr(Deadline, "over", lambda _self, over=over: next(over, True))
            cut = find_reasons(*asked, seconds=5.0)
        assert (cut.left_unasked, cut.p_values) == (left, why.p_values)
        assert len(cut.reasons) == len(why.reasons) - left
        assert cut.stopped.startswith("the limit of 5 s was over after")
        require_an_answer(cut)
    assert cut.as_json()["stopped"] == cut.stopped
    assert why.as_json()["stopped"] is None


class OwnNetwork(torch.nn.Module):
    """A user's own module, with layers of PyG's."""

    def __init__(self, in_features, classes, hidden=8):
        super().__init__()
        self.first = GCNConv(in_features, hidden)
        self.second = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.mark.slow
@sqlite
def test_pygs_explainer_answers_for_a_users_own_module(grown, monkeypatch):
    own = types.ModuleType("own_networks")
    own.OwnNetwork = OwnNetwork
    monkeypatch.setitem(sys.modules, "own_networks", own)
    settings = grown.workspace.settings
    model = settings.model.model_copy(update={"network": "own_networks:OwnNetwork", "hidden": 8})
    workspace = replace(grown.workspace, settings=settings.model_copy(update={"model": model}))
    run_training(workspace)
    run_scoring(workspace)
    key = sorted(predictions.evaluated_keys(workspace.store, workspace.project))[0]
    why = run_explain(workspace, key, why=True).reasons
    assert why.method == "GNNExplainer"
    weights = {one.part.kind: one.weight for one in why.reasons}
    assert set(weights) == {"neighbour", "column"}
    assert all(0 <= one.weight <= 1 for one in why.reasons)
    assert run_explain(workspace, key, why=True).reasons == why
    with pytest.raises(ConfigError, match="no exact passes"):
        run_explain(workspace, key, why=True, explainer="exact")
    with pytest.raises(ConfigError, match="no neighbour or column was weighed"):
        run_explain(workspace, key, why=True, seconds=1e-9)
    with pytest.raises(ConfigError, match="can't explain"):
        run_explain(workspace, key, why=True, explainer="AttentionExplainer")
    _without_torch_it_is_refused_before_the_lease(workspace, key, monkeypatch)


def _without_torch_it_is_refused_before_the_lease(workspace, key, monkeypatch):
    """The version in use is run by torch; nothing was read or written when that is missing."""
    monkeypatch.setattr(extras, "_is_installed", lambda name: name != "torch")
    monkeypatch.setattr(session, "lease_session", lambda _workspace: pytest.fail("took the lease"))
    says = r"^torch is not installed\nneeded: .*own_networks:OwnNetwork"
    with pytest.raises(ConfigError, match=says):
        run_scoring(workspace)
    with pytest.raises(ConfigError, match=says):
        run_rescoring(workspace, [key], "an appeal")
    with pytest.raises(ConfigError, match=r"^torch is not installed\nneeded: .*GNNExplainer"):
        run_explain(workspace, key, why=True)
    found = [(one.level, one.text) for one in check_model(workspace.store, workspace.settings)]
    assert ("error", "torch is not installed") in found
