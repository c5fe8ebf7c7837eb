"""`[model] warm_start`: a new version begins with the weights of the version in use.

What those weights were learnt from, the new version has learnt from too. So none of the nodes that
its ancestors trained on or stopped by may calibrate it or judge it on the holdout. Roles follow
from keys and seed, so there are none unless the configuration changed, and then it starts from
random weights. Runs that helped to choose an ancestor calibrate no descendant. Where the weights do
not fit (other classes, columns, network or width) it begins anew as well. Either way the manifest
says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ringfence.connector.errors import ModelError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.mirror import Mirror, record_keys_at
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.models import manifest_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.ancestors import WARM_START_KEY, ancestors_of, learnt_by, runs_consulted
from ringfence.jobs.project.columns.column_encoders import network_of, network_weights
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.sealed_basis import active_on_record, on_record
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.split import Split, train_instead
from ringfence.models.trees.blend import without_trees


@dataclass(frozen=True, slots=True)
class WarmStart:
    """What a training begins with: a version's weights, or none and why."""

    model: SavedModel | None
    because: str = ""

    def facts(self) -> JsonObject:
        """Return what the manifest keeps of it."""
        if self.model is None:
            return {"from": None, "because": self.because}
        return {
            "from": self.model.version,
            "weights_sha256": self.model.manifest["weights_sha256"],
            "ancestors": [self.model.version, *ancestors_of(self.model.manifest)],
        }

    def describe(self) -> str:
        """Return it in words."""
        if self.model is None:
            return f"it begins with random weights, warm_start or not: {self.because}"
        return f"it begins with the weights of version {self.model.version}"


def plan_warm_start(
    workspace: Workspace, mirror: Mirror, split: Split
) -> tuple[WarmStart | None, Split]:
    """Return what to begin with, and the split with calibration nodes that may calibrate then.

    None if no warm start is configured: the split is then unchanged.
    """
    if not workspace.settings.model.warm_start:
        return None, split
    recorded = active_on_record(workspace)
    if recorded is None:
        return WarmStart(None, "there is no version in use yet"), split
    try:
        model = model_files.load_model(workspace.models, recorded)
    except ModelError as error:
        return WarmStart(None, error.found), split
    if model.classes != split.classes:
        return WarmStart(None, f"version {model.version} knows other classes"), split
    versions = [model.version, *ancestors_of(model.manifest)]
    with on_record(workspace) as (held, basis):
        for version in versions:
            basis.require_model(version)
        basis.require_consulted()
        learnt = learnt_by(held.store, held.project, versions)
        consulted = runs_consulted(held.store, held.project, versions)
    apart = np.concatenate([split.calibration, split.holdout])
    trained_on = sum(key in learnt for key in record_keys_at(mirror, apart))
    if trained_on:
        return WarmStart(
            None,
            f"version {model.version} learnt from {trained_on:,} of the nodes that would calibrate "
            "or compare this one ([model] seed, shares or holdout are not as they were)",
        ), split
    kept = _without_consulted(workspace, mirror, split, model.version, consulted)
    if not len(kept.calibration):
        return WarmStart(
            None, f"all calibration nodes helped to choose version {model.version}"
        ), split
    return WarmStart(model), kept


def _without_consulted(
    workspace: Workspace, mirror: Mirror, split: Split, version: str, runs: frozenset[int]
) -> Split:
    """Move calibration nodes of runs that helped to choose an ancestor to the train nodes."""
    if not runs:
        return split
    with on_record(workspace) as (held, basis):
        basis.require_labels()
        known = KnownNodes(held.store, held.project, version).all()
        basis.require_predictions({node.evaluated_in for node in known})
    keys = {node.node_key for node in known if node.evaluated_in in runs}
    return train_instead(mirror, split, keys)


def begin_with(
    network: torch.nn.Module, start: WarmStart | None, columns: object = None
) -> tuple[dict[str, Tensor] | None, WarmStart | None]:
    """Return the weights that a network begins with, and the start as it came to be.

    Args:
        network: as it is built, untrained.
        start: as it was planned.
        columns: what the network's inputs mean, with several labels.
    """
    if start is None or start.model is None:
        return None, start
    model = start.model
    weights = without_trees(network_weights(model.weights))
    there = {name: tuple(array.shape) for name, array in weights.items()}
    wanted = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    other = sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))
    if columns is not None and columns != encoded_columns(model):
        return None, WarmStart(None, f"version {model.version} reads other columns or categories")
    if other:
        return None, WarmStart(
            None, f"the weights of version {model.version} have other shapes ({other[0]})"
        )
    return {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}, start


def encoded_columns(model: SavedModel) -> list[list[str]] | None:
    """Return the encoded columns of a version by label; None where it has no encoders."""
    return network_of(model).column_names()


def recorded_start(workspace: Workspace, manifest: Mapping[str, Any]) -> WarmStart | None:
    """Return what a version began with, for repeating its training."""
    kept = manifest.get(WARM_START_KEY)
    if not kept or kept["from"] is None:
        return None
    recorded = manifest_of(workspace.store, workspace.project, kept["from"])
    if json.loads(recorded)["weights_sha256"] != kept["weights_sha256"]:
        raise ModelError(
            found=f"version {kept['from']} has other weights than those that the training began "
            "with",
            needed=f"weights with SHA-256 {kept['weights_sha256'][:16]}…",
        )
    return WarmStart(model_files.load_model(workspace.models, recorded))
