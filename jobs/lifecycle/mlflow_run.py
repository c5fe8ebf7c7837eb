"""A training as a run of MLflow: parameters, curves by epoch, metrics, manifest and card.

It is sent after the version is recorded, in a thread that gets at most `[tracking]
timeout_seconds`: a server that is down, slow or wrong causes a note in the report and never fails a
training. The client is made here alone; jobs/lifecycle/mlflow_registry.py uses it as well.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ringfence import __version__
from ringfence.connector.extras import install_command
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.card_page import as_html
from ringfence.jobs.project.model_files import MANIFEST, WEIGHTS
from ringfence.jobs.project.workspace import Workspace

VERSION_TAG = "ringfence.version"
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
    if workspace.settings.tracking.uri is None:
        return None

    def send(client: Any) -> str:
        return send_run(workspace, client, version, manifest)

    sent = ask_mlflow(workspace.settings, send)
    if sent.answer is not None:
        return Sent(sent.answer, f"tracked by MLflow as run {sent.answer}")
    return Sent(None, f"not tracked by MLflow: {sent.why}; the training is recorded all the same")


@dataclass(frozen=True, slots=True)
class Answer:
    """What work at the server gave; None where it did not end well, and why."""

    answer: str | None
    why: str = ""


def ask_mlflow(settings: Settings, work: Callable[[Any], str]) -> Answer:
    """Do `work` with MLflow's client, in a thread that gets at most `timeout_seconds`."""
    tracking = settings.tracking
    answers: list[str] = []
    failed: list[str] = []
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow import MlflowClient  # takes seconds, which are not the server's
    except ImportError as error:
        return Answer(None, f"{error.name} can't be imported: {install_command('tracking')}")

    def do() -> None:
        try:
            answers.append(work(MlflowClient(tracking_uri=tracking.uri)))
        except Exception as error:  # noqa: BLE001  (another's server must not end a verb)
            failed.append(" ".join(str(error).split())[:300] or type(error).__name__)

    thread = threading.Thread(target=do, name="mlflow", daemon=True)
    thread.start()
    thread.join(tracking.timeout_seconds)
    if answers:
        return Answer(answers[0])
    return Answer(
        None, failed[0] if failed else f"no answer within {tracking.timeout_seconds:g} seconds"
    )


def send_run(workspace: Workspace, client: Any, version: str, manifest: Mapping[str, Any]) -> str:
    """Make a run of a training, with its parameters, curves and files; return its id."""
    from mlflow.entities import Metric, Param

    settings, folder = workspace.settings, workspace.models / version
    card = as_html(read_card(workspace.store, workspace.project, version))
    run = client.create_run(
        find_experiment(client, settings.tracking.experiment),
        run_name=version,
        tags={
            VERSION_TAG: version,
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


def find_experiment(client: Any, name: str) -> str:
    """Return the id of an experiment by its name; it is made where it is missing."""
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
