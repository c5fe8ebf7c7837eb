"""`[model] network = "auto"` and `"blend"` through train, score, audit, explain and retrain."""

import json

import numpy as np
import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.models import find_active_manifest
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.engines.partitioned import PartitionedEngine
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.promotion import run_promotion, run_rollback
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import load_model
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.training.repeat import run_repeat
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import run_explain
from tests.orders import ORDERS, REVEAL, order_projects
from tests.stores import postgresql_later, sqlite

pytestmark = pytest.mark.slow
make = order_projects

QUICK = "\nhidden = 8\nmax_epochs = 30\nlearning_rate = 0.02\ngraph_check = false"
BLEND = f'network = "blend"{QUICK}'
AUTO = f'network = "auto"{QUICK}'


def active(workspace):
    return json.loads(find_active_manifest(workspace.store, workspace.project))


@postgresql_later
def test_a_blend_through_all_that_a_version_can_do(graph, make, tmp_path):
    workspace = make(f"{BLEND}\nshadow = true")
    trained = run_training(workspace)
    assert trained.network == "blend"
    assert trained.calibration_accuracy > 0.85  # the class stands at the shop
    manifest = active(workspace)
    assert manifest["tree_recipe"]["learning_rate"] == 0.05  # the file's step is the network's
    assert manifest["recipe"]["learning_rate"] == 0.02
    assert manifest["metrics"]["validation_accuracy"] == trained.validation_accuracy
    again = run_repeat(workspace, trained.version)
    assert (again.equal, again.differences) == (True, ())
    assert trained.comparison is not None

    graph.run(ORDERS, first=600, count=40, known=False)
    first = run_scoring(workspace)
    assert first.evaluated >= 40
    assert "rounds of trees and a typed forward pass" in first.run.notes[0]
    graph.run(ORDERS, first=660, count=20, known=False)
    graph.run("MATCH (s:Shop {name: 'shop 3'}) SET s.country = 'fr'")
    assert "sums of hubs were kept" in run_scoring(workspace).run.notes[0]
    require_same_bits(workspace, tmp_path)
    require_mean_of_both(workspace, tmp_path)
    require_reasons(workspace)
    graph.run(REVEAL)
    run_audit(workspace)
    assert run_rescoring(workspace, ["661"], "an appeal").sets
    assert run_verification(workspace).problems == ()

    second = run_training(workspace)
    assert second.state == "candidate"
    graph.run(ORDERS, first=700, count=10, known=False)
    assert run_scoring(workspace).evaluated == 10  # the candidate shadows it
    run_promotion(workspace, second.version, "newer classes")
    graph.run(ORDERS, first=720, count=10, known=False)
    assert run_scoring(workspace).evaluated == 10
    run_rollback(workspace, "the older one was better")
    card = read_card(workspace.store, workspace.project, second.version)
    assert dict(card.sections[0].rows)["network"].startswith("blend (")


def pass_outputs(workspace, folder, rows, model=None):
    mirror = load_graph(workspace)
    recorded = find_active_manifest(workspace.store, workspace.project)
    model = model or load_model(workspace.models, recorded)
    graph = inference_graph(mirror, workspace.mapping)
    return outputs_at(folder / "anew" / "t", model, mirror, workspace.mapping, graph, rows).logits


def require_same_bits(workspace, tmp_path):
    """What a run kept changes no bit: a subset computed anew equals the whole computed anew."""
    rows = load_graph(workspace).rows_of_label(0)
    whole = pass_outputs(workspace, tmp_path / "whole", rows)
    some = pass_outputs(workspace, tmp_path / "some", rows[::7])
    assert np.array_equal(whole[::7], some)


def require_mean_of_both(workspace, tmp_path):
    """The probabilities are the mean of those of the two halves, each run alone."""
    from dataclasses import replace

    from ringfence.models.scores import softmax64

    model = load_model(workspace.models, find_active_manifest(workspace.store, workspace.project))
    rows = load_graph(workspace).rows_of_label(0)[:50]
    network = {name: array for name, array in model.weights.items() if "trees." not in name}
    halves = [
        replace(model, manifest={**model.manifest, "network": name}, weights=weights)
        for name, weights in (("typed_sage", network), ("trees", model.weights))
    ]
    each = [
        softmax64(pass_outputs(workspace, tmp_path / str(at), rows, half))
        for at, half in enumerate(halves)
    ]
    assert not np.allclose(each[0], each[1], atol=0.01)  # the control: the two differ
    both = softmax64(pass_outputs(workspace, tmp_path / "both", rows, model))
    assert np.allclose(both, (each[0] + each[1]) / 2, atol=1e-6)


def require_reasons(workspace):
    """Exact reasons: p-values are those on record, the shop matters more than the note."""
    told = run_explain(workspace, "664", why=True)
    why = told.reasons
    assert why.method == "exact"
    recorded = {value.class_: value.p for value in told.p_values}
    assert dict(zip(why.classes, why.p_values, strict=True)) == pytest.approx(recorded)
    parts = {reason.part.describe(): reason for reason in why.reasons}
    (shop,) = (name for name in parts if name.startswith("neighbour Shop"))
    assert parts[shop].moved > parts["column note"].moved
    with pytest.raises(ConfigError, match="mean of a network and boosted trees"):
        run_explain(workspace, "664", why=True, explainer="GNNExplainer")


@sqlite
def test_auto_takes_the_lowest_log_loss_and_says_what_it_tried(graph, make, monkeypatch):
    workspace = make(AUTO)
    trained = run_training(workspace)
    choice = active(workspace)["scorer_choice"]
    losses = {scorer["name"]: scorer["log_loss"] for scorer in choice["tried"]}
    assert set(losses) == {"typed_sage", "trees", "blend"}
    assert choice["chosen"] == min(losses, key=losses.get) == trained.network
    assert active(workspace)["network"] == trained.network
    assert {s["name"] for s in choice["tried"] if s["behind"] == 0} == {trained.network}
    assert all(scorer["standard_error"] > 0 for scorer in choice["tried"])
    assert any("of auto, by the log loss on" in sentence for sentence in trained.promise)
    rows = dict(read_card(workspace.store, workspace.project, trained.version).sections[0].rows)
    assert rows[f"auto tried {trained.network}"].endswith("; taken")
    assert active(workspace)["training"]["configured"]["network"] == "auto"
    assert run_repeat(workspace, trained.version).equal

    def turned(_split, fitted):  # the control: other losses, another choice
        loss = {"trees": 0.1, "typed_sage": 0.3, "blend": 0.2}
        return np.full(5, loss[fitted.manifest_facts()["network"]])

    monkeypatch.setattr("ringfence.jobs.training.chosen_fit.validation_losses", turned)
    assert run_training(workspace).network == "trees"


@sqlite
def test_auto_leaves_out_what_can_not_be_computed_and_says_why(graph, make, monkeypatch):
    workspace = make(AUTO)

    def refuse(self, network):
        if network != "typed_sage":
            raise ConfigError(found=f"no {network} here", needed="typed_sage")

    monkeypatch.setattr("ringfence.jobs.engines.local.LocalEngine.require_network", refuse)
    trained = run_training(workspace)
    assert trained.network == "typed_sage"
    assert active(workspace)["scorer_choice"]["left_out"] == {"trees": "no trees here"}
    assert any("trees was left out: no trees here" in line for line in trained.promise)


def test_ray_refuses_a_blend_with_what_to_do():
    class Engine(PartitionedEngine):
        def open_workers(self, folder):
            raise AssertionError

        def close(self):
            pass

    with pytest.raises(ConfigError, match="can't compute the network blend yet") as error:
        Engine("ray").require_network("blend")
    assert error.value.next_step == 'set [engine] kind = "local"'


@pytest.mark.parametrize("network", ["auto", "blend"])
def test_one_label_refuses_them(tmp_path, network):
    path = tmp_path / "ringfence.toml"
    path.write_text(
        '[neo4j]\nuri = "bolt://localhost:1"\n[graph]\nlabel = "A"\nkey = "id"\n'
        f'features = "x"\nclass_property = "y"\ncreated_at = "t"\n[model]\nnetwork = "{network}"\n'
    )
    with pytest.raises(ConfigError, match="reads raw columns"):
        load_settings(path, {})
    assert run_doctor(path)[0].level == "error"
