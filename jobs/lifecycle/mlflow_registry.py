"""Model versions in MLflow's registry: `champion` is in use, `candidate` waits to be promoted.

What the registry shows follows the audit store and never leads it: after a training, a promotion
and a rollback the two aliases are set anew. A server that is away costs a sentence; the next change
sets what this one could not.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ringfence.connector.store.lifecycle.activations import activations_of, newest_candidate
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.lifecycle.mlflow_run import VERSION_TAG, ask_mlflow, find_experiment, send_run
from ringfence.jobs.project.workspace import Workspace

__all__ = ["CANDIDATE", "CHAMPION", "registered_name", "set_aliases"]

CHAMPION, CANDIDATE = "champion", "candidate"
PROJECT_TAG = "ringfence.project"


def registered_name(project: str) -> str:
    """Return the name of a project's model in the registry, which takes no slashes and colons.

    >>> registered_name("payments"), registered_name("fraud/eu: it's")
    ('ringfence-payments', 'ringfence-fraud-eu- it-s')
    """
    return "ringfence-" + re.sub(r"[^\w. -]", "-", project)


def set_aliases(workspace: Workspace) -> str | None:
    """Register the version in use and the newest candidate, and set their aliases; say so.

    None where no server is configured.
    """
    if workspace.settings.tracking.uri is None:
        return None
    champion = activations_of(workspace.store, workspace.project)[-1].version
    candidate = newest_candidate(workspace.store, workspace.project)

    def register(client: Any) -> str:
        name = _registered_model(client, workspace.project)
        _set_alias(workspace, client, name, CHAMPION, champion)
        _set_alias(workspace, client, name, CANDIDATE, candidate)
        return name

    asked = ask_mlflow(workspace.settings, register)
    if asked.answer is None:
        return f"MLflow's registry was not told: {asked.why}; the change is recorded all the same"
    waiting = f", {candidate} is its {CANDIDATE}" if candidate else ""
    return f"{champion} is the {CHAMPION} of {asked.answer} in MLflow's registry{waiting}"


def _registered_model(client: Any, project: str) -> str:
    from mlflow.exceptions import MlflowException

    name = registered_name(project)
    try:
        client.create_registered_model(name, tags={PROJECT_TAG: project})
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    return name


def _set_alias(
    workspace: Workspace, client: Any, name: str, alias: str, version: str | None
) -> None:
    if version is not None:
        client.set_registered_model_alias(
            name, alias, _registered_version(workspace, client, name, version)
        )
    elif alias in client.get_registered_model(name).aliases:
        client.delete_registered_model_alias(name, alias)


def _registered_version(workspace: Workspace, client: Any, name: str, version: str) -> str:
    """Return the registry's number of a version, which is registered if it is not yet."""
    for known in client.search_model_versions(f"name = '{name}'"):
        if known.tags.get(VERSION_TAG) == version:
            return str(known.version)
    run_id = _find_run(workspace, client, version)
    if run_id is None:  # trained before there was a server
        manifest = json.loads(manifest_of(workspace.store, workspace.project, version))
        run_id = send_run(workspace, client, version, manifest)
    artifacts = client.get_run(run_id).info.artifact_uri
    tags = {VERSION_TAG: version, PROJECT_TAG: workspace.project}
    made = client.create_model_version(name, artifacts, run_id=run_id, tags=tags)
    return str(made.version)


def _find_run(workspace: Workspace, client: Any, version: str) -> str | None:
    experiment = find_experiment(client, workspace.settings.tracking.experiment)
    for run in client.search_runs([experiment], f"tags.`{VERSION_TAG}` = '{version}'"):
        if run.data.tags.get(PROJECT_TAG) == workspace.project:
            return str(run.info.run_id)
    return None
