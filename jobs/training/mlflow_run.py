"""A training as a run of MLflow: parameters, curves by epoch, metrics, manifest and card.

It is sent after the version is recorded, in a thread that gets at most `[tracking]
timeout_seconds`: a server that is down, slow or wrong causes a note in the report and never fails a
training. MLflow is imported here alone.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence import __version__
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.card_page import as_html
from ringfence.jobs.project.model_files import MANIFEST, WEIGHTS
from ringfence.jobs.project.workspace import Workspace

MAX_METRICS_PER_CALL = 1_000  # MLflow's limit
MAX_PARAMS_PER_CALL = 100
MAX_PARAM_CHARS = 500
QUIET = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
}
"""Set unless the user has set them: MLflow's own timeouts are minutes."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Outcome of sending: the run's id if it was delivered, and a sentence."""

    run_id: str | None
    sentence: str


def track_training(workspace: Workspace, version: str, manifest: Mapping[str, Any]) -> Sent | None:
    """Send a recorded training to the configured server; None where none is configured."""
    settings = workspace.settings
    if settings.tracking.uri is None:
        return None
    folder = workspace.models / version
    run_ids: list[str] = []
    failed: list[str] = []

    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import mlflow  # noqa: F401  (takes seconds, which are not the server's)
    except ModuleNotFoundError as error:
        why = f"{error.name} is not installed: pip install 'ringfence[tracking]'"
        return Sent(None, f"not tracked by MLflow: {why}; the training is recorded all the same")

    def send() -> None:
        try:
            card = as_html(read_card(workspace.store, workspace.project, version))
            run_ids.append(_send(settings, version, manifest, card, folder))
        except Exception as error:  # noqa: BLE001  (another's server must not end a training)
            failed.append(" ".join(str(error).split())[:300] or type(error).__name__)

    thread = threading.Thread(target=send, name="mlflow", daemon=True)
    thread.start()
    thread.join(settings.tracking.timeout_seconds)
    if run_ids:
        return Sent(run_ids[0], f"tracked by MLflow as run {run_ids[0]}")
    why = failed[0] if failed else f"no answer within {settings.tracking.timeout_seconds:g} seconds"
    return Sent(None, f"not tracked by MLflow: {why}; the training is recorded all the same")


def _send(
    settings: Settings, version: str, manifest: Mapping[str, Any], card: str, folder: Path
) -> str:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(tracking_uri=settings.tracking.uri)
    run = client.create_run(
        _experiment(client, settings.tracking.experiment),
        run_name=version,
        tags={
            "ringfence.version": version,
            "ringfence.project": settings.project,
            "ringfence.software": __version__,
            "ringfence.weights_sha256": str(manifest["weights_sha256"]),
        },
    )
    run_id = str(run.info.run_id)
    given = [Param(name, value[:MAX_PARAM_CHARS]) for name, value in parameters(manifest).items()]
    for start in range(0, len(given), MAX_PARAMS_PER_CALL):
        client.log_batch(run_id, params=given[start : start + MAX_PARAMS_PER_CALL])
    measured = [Metric(name, value, 0, step) for name, value, step in metrics(manifest)]
    for start in range(0, len(measured), MAX_METRICS_PER_CALL):
        client.log_batch(run_id, metrics=measured[start : start + MAX_METRICS_PER_CALL])
    client.log_artifact(run_id, str(folder / MANIFEST))
    client.log_text(run_id, card, "model-card.html")
    if settings.tracking.weights:
        client.log_artifact(run_id, str(folder / WEIGHTS))
    client.set_terminated(run_id)
    return run_id


def _experiment(client: Any, name: str) -> str:
    experiment = client.get_experiment_by_name(name)
    return str(
        experiment.experiment_id if experiment is not None else client.create_experiment(name)
    )


def parameters(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return what decided the training, by name."""
    values: dict[str, Any] = {"network": manifest["network"], "seed": manifest["seed"]}
    values |= {f"option.{name}": value for name, value in manifest["options"].items()}
    recipe = {name: value for name, value in manifest["recipe"].items() if name != "seed"}
    values |= {f"recipe.{name}": value for name, value in recipe.items()}
    values |= {f"nodes.{role}": count for role, count in manifest["counts"].items()}
    return {name: str(value) for name, value in values.items()}


def metrics(manifest: Mapping[str, Any]) -> list[tuple[str, float, int]]:
    """Return (name, value, epoch) of the curves, then the final metrics at the best epoch."""
    curves = [
        (name, float(value), epoch)
        for name, values in manifest["curves"].items()
        for epoch, value in enumerate(values)
    ]
    best = int(manifest["best_epoch"])
    final = [
        (f"final.{name}", float(value), best)
        for name, value in manifest["metrics"].items()
        if isinstance(value, int | float)
    ]
    trials = (manifest.get("training") or {}).get("trials", ())
    tried = [
        ("trial.validation_log_loss", float(trial["validation_log_loss"]), number)
        for number, trial in enumerate(trials)
    ]
    return [metric for metric in (*curves, *final, *tried) if math.isfinite(metric[1])]
