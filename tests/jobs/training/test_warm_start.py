"""A version that begins with the weights of the one in use, and one that can't, each saying so."""

import json

import numpy as np
import torch

from ringfence.connector.records import KnownNode
from ringfence.connector.store.models import manifest_of, members
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.promotion import run_promotion
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import Scaling
from ringfence.jobs.scoring.calibration.calibration_set import Eligibility
from ringfence.jobs.training import repeat, warm_start
from ringfence.jobs.training.repeat import run_repeat
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.train import run_training
from ringfence.jobs.training.warm_start import WarmStart, begin_with
from ringfence.models.networks import GCN, MLP
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train
from tests.jobs.training.test_chosen_fit import with_model
from tests.known_nodes import ListedNodes, fitting_record
from tests.stores import sqlite

NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def saved(network, version="v1", **facts):
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    nothing = np.empty(0, np.float32)
    manifest = {"weights_sha256": "ab", "classes": ["a", "b"], **facts}
    return SavedModel(version, weights, Scaling(nothing, nothing), nothing, manifest)


def test_training_goes_on_from_the_weights_it_is_given():
    x, y = torch.eye(4), torch.tensor([0, 0, 1, 1])
    parts = torch.tensor([0, 2]), torch.tensor([1, 3])
    given = {name: 0.5 + value for name, value in MLP(4, 2).state_dict().items()}
    little = TrainingOptions(seed=1, max_epochs=1, learning_rate=1e-9, weight_decay=0.0)
    graph, targets = OneLabelData(x, NO_EDGES), TrainingTargets(y, *parts)
    warm = train(MLP(4, 2), graph, targets, little, initial=given)
    cold = train(MLP(4, 2), graph, targets, little)
    assert all(torch.allclose(warm.state[name], given[name], atol=1e-6) for name in given)
    assert not all(torch.allclose(cold.state[name], given[name], atol=1e-6) for name in given)


def test_weights_of_another_shape_or_network_are_not_begun_with():
    start = WarmStart(saved(GCN(5, 2, hidden=8)))
    weights, begun = begin_with(GCN(5, 2, hidden=8), start)
    assert weights is not None
    assert begun.facts()["from"] == "v1"
    for other in (GCN(5, 3, hidden=8), GCN(6, 2, hidden=8), GCN(5, 2, hidden=9), MLP(5, 2)):
        weights, begun = begin_with(other, start)
        assert weights is None
        assert begun.facts()["from"] is None
        assert "other shapes" in begun.describe()
    assert begin_with(GCN(5, 2), None) == (None, None)


def test_encoded_columns_must_mean_the_same():
    start = WarmStart(saved(MLP(5, 2)))  # as wide, of other categories
    weights, begun = begin_with(MLP(5, 2), start, [["channel / app"]])
    assert weights is None
    assert "other columns or categories" in begun.describe()


def test_an_ancestor_of_an_ancestor_is_an_ancestor():
    model = saved(MLP(5, 2), "v2", warm_start={"from": "v1", "ancestors": ["v1"]})
    assert WarmStart(model).facts()["ancestors"] == ["v2", "v1"]


def test_runs_that_chose_an_ancestor_are_learnt_from_and_calibrate_nobody(monkeypatch):
    class Keys:
        def take(self, rows):
            return [f"i:{row}" for row in rows]

        column = take

    class Nodes:
        keys, incarnations = Keys(), {}

    class Project:
        store, project = None, "p"

    known = [KnownNode("i:7", 3, "a", 5, None, None), KnownNode("i:8", 4, "a", 5, None, None)]
    monkeypatch.setattr(warm_start, "KnownNodes", lambda *_: ListedNodes(known))
    monkeypatch.setattr(warm_start, "on_record", fitting_record)
    split = Split(("a", "b"), np.zeros(10, np.int64), np.array([1, 9]), np.array([2]),
                  np.array([6, 7, 8]))  # fmt: skip
    found = warm_start._without_consulted(Project, Nodes, split, "v1", frozenset({3}))
    assert found.calibration.tolist() == [6, 8]
    assert found.train.tolist() == [1, 7, 9]  # in the order of their keys
    untouched = warm_start._without_consulted(Project, Nodes, split, "v1", frozenset())
    assert untouched is split


def test_nodes_that_an_ancestor_learnt_from_never_join():
    nodes = [KnownNode(f"i:{i}", 1, "a", 5, None, None) for i in range(3)]
    eligible = Eligibility("v2", 1, {}, learnt=frozenset({"i:1"}))
    assert [node.node_key for node in eligible.among(nodes, set())] == ["i:0", "i:2"]


@sqlite
def test_a_candidate_begins_where_the_version_in_use_ended(grown, monkeypatch):
    workspace = with_model(grown.workspace, max_epochs=12, patience=12)
    first = run_training(workspace)
    cold = curves(workspace, first.version)
    warm = with_model(workspace, warm_start=True)
    second = run_training(warm)
    assert f"begins with the weights of version {first.version}" in " ".join(second.promise)
    facts = manifest(workspace, second.version)["warm_start"]
    assert (facts["from"], facts["ancestors"]) == (first.version, [first.version])
    ours = curves(workspace, second.version)

    assert ours["validation_loss"][0] < cold["validation_loss"][3]
    rows = dict(read_card(workspace.store, "test", second.version).sections[0].rows)
    assert rows["began with the weights of"] == first.version

    assert run_repeat(workspace, second.version).equal
    with monkeypatch.context() as patched:  # the control: begun anew the weights are others
        patched.setattr(repeat, "recorded_start", lambda *_: None)
        assert not run_repeat(workspace, second.version).equal

    run_promotion(workspace, second.version, "goes on")
    third = run_training(warm)
    assert manifest(workspace, third.version)["warm_start"]["ancestors"] == [
        second.version,
        first.version,
    ]
    versions, store = (first.version, second.version), workspace.store
    before = [one for version in versions for one in members(store, "test", version)]
    learnt = {one.node_key for one in before if one.role != "calibration"}
    held = {one.node_key for one in members(workspace.store, "test", third.version, "calibration")}
    assert held
    assert not held & learnt
    assert run_verification(workspace).problems == ()


@sqlite
def test_a_candidate_that_would_be_calibrated_by_what_it_learnt_begins_anew(grown):
    workspace = with_model(grown.workspace, max_epochs=3)
    first = run_training(workspace)
    reseeded = with_model(workspace, warm_start=True, seed=9)
    said = run_training(reseeded)
    kept = manifest(workspace, said.version)["warm_start"]
    assert kept["from"] is None
    assert f"version {first.version} learnt from" in kept["because"]
    assert "random weights" in " ".join(said.promise)
    narrow = run_training(with_model(workspace, warm_start=True, hidden=8))
    assert "other shapes" in manifest(workspace, narrow.version)["warm_start"]["because"]
    assert "warm_start" not in manifest(workspace, first.version)  # not asked for


def curves(workspace, version):
    return manifest(workspace, version)["curves"]


def manifest(workspace, version):
    return json.loads(manifest_of(workspace.store, workspace.project, version))
