"""Promotions and rollbacks move the aliases of a real MLflow registry."""

import pytest

from ringfence.jobs.lifecycle.mlflow_registry import CANDIDATE, CHAMPION, registered_name
from ringfence.jobs.lifecycle.promotion import run_promotion, run_rollback
from ringfence.jobs.lifecycle.versions import read_versions
from ringfence.jobs.training.train import run_training
from tests.jobs.lifecycle.mlflow_server import free_port, mlflow_server
from tests.jobs.lifecycle.test_promotion import active, two_versions, with_settings
from tests.patience import PATIENCE_SECONDS
from tests.stores import sqlite

PATIENT = {"timeout_seconds": PATIENCE_SECONDS}


def aliases(address, project):
    """The registry's aliases, each with the version of ringfence that it stands for."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=address)
    name = registered_name(project)
    return {
        alias: client.get_model_version(name, number).tags["ringfence.version"]
        for alias, number in client.get_registered_model(name).aliases.items()
    }


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow's own
@sqlite
@two_versions
def test_the_champion_is_in_use_and_the_candidate_waits(trained, tmp_path):
    with mlflow_server(tmp_path) as address:
        workspace = with_settings(
            trained.workspace, "tracking", uri=address, timeout_seconds=PATIENCE_SECONDS
        )
        project = workspace.project
        first, second = (row.version for row in read_versions(workspace.store, project).versions)
        promoted = run_promotion(workspace, second, "better")
        assert promoted.tracking.startswith(f"{second} is the {CHAMPION}"), promoted.tracking
        assert aliases(address, project) == {CHAMPION: second}
        back = run_rollback(workspace, "it was not")
        assert aliases(address, project) == {CHAMPION: first}
        assert back.tracking
        third = run_training(workspace)
        assert "tracked by MLflow as run" in third.tracking
        assert aliases(address, project) == {CHAMPION: first, CANDIDATE: third.version}
        run_promotion(workspace, third.version, "better still")
        assert aliases(address, project) == {CHAMPION: third.version}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@sqlite
@two_versions
def test_a_registry_that_is_away_costs_a_sentence(trained):
    uri = f"http://127.0.0.1:{free_port()}"
    workspace = with_settings(
        trained.workspace, "tracking", uri=uri, timeout_seconds=PATIENCE_SECONDS
    )
    second = read_versions(workspace.store, workspace.project).versions[-1].version
    done = run_promotion(workspace, second, "better")
    assert done.tracking.startswith("MLflow's registry was not told: ")
    assert active(workspace) == second


@sqlite
@two_versions
def test_without_a_server_nothing_is_said(trained):
    workspace = trained.workspace
    second = read_versions(workspace.store, workspace.project).versions[-1].version
    assert run_promotion(workspace, second, "better").tracking is None
