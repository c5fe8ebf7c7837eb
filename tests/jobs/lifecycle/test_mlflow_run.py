"""A training arrives at a real MLflow server; a server that is away costs a sentence."""

import json

import pytest

from ringfence.connector.store.engine import open_store
from ringfence.jobs.lifecycle.mlflow_run import metrics, parameters, track_training
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.samples.audit_store import VERSION, Plan, fill_store
from tests.dashboard.conftest import settings_at
from tests.jobs.lifecycle.mlflow_server import free_port, mlflow_server
from tests.patience import PATIENCE_SECONDS

MANIFEST = {
    "network": "GCN",
    "seed": 3,
    "options": {"hidden": 8},
    "recipe": {"seed": 3, "learning_rate": 0.01, "class_weights": None},
    "counts": {"train": 50, "validation": 20, "calibration": 30},
    "curves": {"train_loss": [1.0, 0.5, 0.4], "validation_loss": [1.1, 0.9, float("nan")]},
    "best_epoch": 1,
    "metrics": {"validation_accuracy": 0.75},
    "weights_sha256": "ab" * 32,
    "training": {"trials": [{"validation_log_loss": 0.9}, {"validation_log_loss": 0.8}]},
}


@pytest.fixture
def project(tmp_path):
    """An audit store with a model, and the model's files; no graph is asked."""

    def opened(**tracking):
        settings = settings_at(tmp_path, tracking=tracking)
        store = open_store(settings.audit.url)
        fill_store(store, settings, Plan(runs=1, per_run=5))
        workspace = Workspace(settings, settings.mapping(), None, store)
        folder = workspace.models / VERSION
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"version": VERSION}))
        return workspace

    return opened


@pytest.fixture
def server(tmp_path):
    with mlflow_server(tmp_path) as address:
        yield address


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_parameters_curves_and_files_arrive_at_a_real_server(project, server):
    from mlflow import MlflowClient

    sent = track_training(
        project(uri=server, experiment="accounts", timeout_seconds=PATIENCE_SECONDS),
        VERSION,
        MANIFEST,
    )
    assert sent.run_id, sent.sentence
    client = MlflowClient(tracking_uri=server)
    run = client.get_run(sent.run_id)
    assert run.data.params == parameters(MANIFEST)
    assert run.info.status == "FINISHED"
    assert run.data.tags["ringfence.version"] == VERSION
    curve = client.get_metric_history(sent.run_id, "train_loss")
    assert [(one.step, one.value) for one in curve] == [(0, 1.0), (1, 0.5), (2, 0.4)]
    assert run.data.metrics["final.validation_accuracy"] == 0.75
    names = {one.path for one in client.list_artifacts(sent.run_id)}
    assert names == {"manifest.json", "model-card.html"}
    found = client.get_experiment_by_name("accounts")
    assert found.experiment_id == run.info.experiment_id


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_server_that_is_away_costs_a_sentence(project):
    workspace = project(uri=f"http://127.0.0.1:{free_port()}", timeout_seconds=PATIENCE_SECONDS)
    sent = track_training(workspace, VERSION, MANIFEST)
    assert sent.run_id is None
    assert sent.sentence.startswith("not tracked by MLflow: ")


def test_without_a_server_nothing_is_sent(project):
    assert track_training(project(), VERSION, MANIFEST) is None


def test_values_that_are_no_numbers_are_left_out():
    found = metrics(MANIFEST)
    assert ("validation_loss", 0.9, 1) in found
    assert not [one for one in found if one[0] == "validation_loss" and one[2] == 2]
    assert ("trial.validation_log_loss", 0.8, 1) in found
    assert parameters(MANIFEST)["recipe.learning_rate"] == "0.01"
