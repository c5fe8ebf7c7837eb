"""`ringfence train --like VERSION`: repeat a training, and say whether the weights are equal.

The labelled nodes are those of the version, in their roles and with the classes that they had; the
settings are those of its manifest; columns and relationships are those of the mirror, which is the
graph as the last training or run read it. Nothing is recorded or written: no version is made, the
one in use stays, and a schedule may run meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ModelError
from ringfence.connector.mirror import UNKNOWN, Mirror, find_recorded
from ringfence.connector.records import Member
from ringfence.connector.store.models import manifest_of, members
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.lifecycle.promotion import find_version
from ringfence.jobs.project import model_files
from ringfence.jobs.project.columns.column_encoders import counts_classified
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.model_files import SEEN_KEY, TREE_RECIPE_KEY, SavedModel
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.chosen_fit import half_settings, with_network
from ringfence.jobs.training.fit import fit_network
from ringfence.jobs.training.fitted import FittedNetwork
from ringfence.jobs.training.fitted_trees import blend
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.warm_start import WarmStart, recorded_start
from ringfence.models.networks.registry import TREES, TYPED_SAGE, is_blend, is_trees
from ringfence.models.training.loop import Epoch

RECIPE_SETTINGS = ("learning_rate", "weight_decay", "max_epochs", "patience")
TRAINING_KEY = "training"  # of a manifest: what a repetition needs
OPTIONS = ("hidden", "layers", "degrees")  # that are settings too; trees have none of them


@dataclass(frozen=True, slots=True)
class RepeatReport:
    """Whether a repeated training gave the weights of a version, and what may explain it if not.

    largest_difference: of any weight; None where the shapes differ. `differences` says what is
    not as it was at the training.
    """

    version: str
    equal: bool
    largest_difference: float | None
    weights: int
    train: int
    validation: int
    epochs: int
    differences: tuple[str, ...]


def run_repeat(
    workspace: Workspace,
    version: str,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> RepeatReport:
    """Train once more as `version`, or the only one whose name begins so, was trained."""
    name = find_version(workspace, version)
    recorded = manifest_of(workspace.store, workspace.project, name)
    require_mapping(workspace.mapping, recorded)
    model = model_files.load_model(workspace.models, recorded)
    manifest: Mapping[str, Any] = json.loads(recorded)
    settings, unknown = recorded_settings(workspace.settings.model, manifest)
    known = members(workspace.store, workspace.project, name)
    mirror = load_graph(workspace)
    if mirror is None:
        raise ModelError(
            found="there is no mirror of the graph on this machine",
            needed="the graph as a training or run has read it here",
            next_step="ringfence score",
        )
    split, gone = recorded_split(mirror, model, known)
    as_then = replace(workspace, settings=workspace.settings.model_copy(update={"model": settings}))
    start = recorded_start(workspace, manifest)
    fitted = fit_again(as_then, mirror, split, on_epoch, manifest, start)
    largest = largest_difference(model, fitted)
    differences = [*unknown, *gone, *_graph_differences(mirror, manifest)]
    return RepeatReport(
        version=name,
        equal=largest == 0.0,
        largest_difference=largest,
        weights=sum(array.size for array in fitted.weights.values()),
        train=len(split.train),
        validation=len(split.validation),
        epochs=fitted.trained.epochs,
        differences=tuple(differences),
    )


def recorded_settings(
    now: ModelSettings, manifest: Mapping[str, Any]
) -> tuple[ModelSettings, list[str]]:
    """Return the settings that a version was fitted with, and what of them is not on record."""
    kept = manifest.get(TRAINING_KEY)
    configured = now.model_dump(mode="json") if kept is None else dict(kept["configured"])
    options, recipe = manifest["options"], manifest["recipe"]
    configured |= {
        "network": manifest["network"],
        "dropout": options.get("dropout"),
        "seed": manifest["seed"],
        "learning_rate": recipe["learning_rate"],
        "weight_decay": recipe["weight_decay"],
        "max_epochs": recipe["max_epochs"],
        "patience": recipe["patience"],
        "class_weights": recipe["class_weights"] is not None,
        "search": 0,
    }
    configured |= {name: options[name] for name in OPTIONS if name in options}
    if is_trees(manifest["network"]):
        configured["degrees"] = counts_classified(manifest)
    known = {name: configured[name] for name in configured if name in ModelSettings.model_fields}
    said = (
        ["the manifest is of an older version: [model] batch_size is taken from the configuration"]
        if kept is None
        else []
    )
    return ModelSettings.model_validate(known), said


def recorded_split(
    mirror: Mirror, model: SavedModel, known: list[Member]
) -> tuple[Split, list[str]]:
    """Return a version's labelled nodes by role, as rows of the mirror, and which are missing."""
    ordered = sorted(known, key=lambda member: member.node_key)
    rows = find_recorded(mirror, [member.node_key for member in ordered])
    indices = np.full(mirror.size, UNKNOWN, np.int64)
    here = rows >= 0
    indices[rows[here]] = np.array([member.class_index for member in ordered], np.int64)[here]
    roles = np.array([member.role for member in ordered])
    missing = {role: int((~here & (roles == role)).sum()) for role in ("train", "validation")}
    said = [
        f"{count} of its {role} nodes have left the graph"
        for role, count in missing.items()
        if count
    ]
    parts = {role: rows[here & (roles == role)] for role in ("train", "validation", "calibration")}
    if not len(parts["train"]) or not len(parts["validation"]):
        raise ModelError(
            found=f"none of the nodes that {model.version} was trained on is in the graph any more",
            needed="train and validation nodes of that version",
            next_step="ringfence train",
        )
    return Split(tuple(model.classes), indices, **parts), said


def largest_difference(model: SavedModel, fitted: FittedNetwork) -> float | None:
    """Return the largest difference of any weight or scale; 0 where all bits are equal."""
    then = {**model.weights, "mean": model.scaling.mean, "spread": model.scaling.spread}
    scaling = fitted.inputs.scaling
    now = {**fitted.weights, "mean": scaling.mean, "spread": scaling.spread}
    if {name: array.shape for name, array in then.items()} != {
        n: array.shape for n, array in now.items()
    }:
        return None
    if all(_same_bits(then[name], now[name]) for name in then):
        return 0.0
    numbers = [name for name in then if then[name].dtype.kind == "f"]
    most = [np.abs(then[n].astype(float) - now[n].astype(float)).max(initial=0) for n in numbers]
    return float(max([*most, np.finfo(np.float64).tiny]))


def _same_bits(first: NDArray[Any], other: NDArray[Any]) -> bool:
    return first.dtype == other.dtype and first.tobytes() == other.tobytes()


def _graph_differences(mirror: Mirror, manifest: Mapping[str, Any]) -> list[str]:
    data = manifest.get("data")
    if not data:
        return []
    now = {"nodes": mirror.node_count, "relationships": mirror.edge_count}
    return [
        f"the graph has {now[name]:,} {name}, {data[name]:,} at the training"
        for name in now
        if now[name] != data[name]
    ]


def fit_again(
    workspace: Workspace,
    mirror: Mirror,
    split: Split,
    on_epoch: Callable[[Epoch], None] | None,
    manifest: Mapping[str, Any],
    start: WarmStart | None,
) -> FittedNetwork:
    """Repeat the fit of a version with its settings; a blend has two recipes."""
    weighed = manifest["recipe"]["class_weights"] is not None
    sees = manifest.get(SEEN_KEY) is not None
    if not is_blend(manifest["network"]):
        return fit_network(workspace, mirror, split, on_epoch, weighed, start, sees_arrived=sees)
    settings, recipe = workspace.settings.model, manifest[TREE_RECIPE_KEY]
    of_trees = {name: recipe[name] for name in RECIPE_SETTINGS}
    of_trees |= {"network": TREES, "degrees": counts_classified(manifest)}
    grown = settings.model_copy(update=of_trees)
    network = with_network(workspace, half_settings(settings, TYPED_SAGE))
    return blend(
        fit_network(network, mirror, split, on_epoch, weighed, start, sees_arrived=sees),
        fit_network(
            with_network(workspace, grown),
            mirror,
            split,
            on_epoch,
            recipe["class_weights"] is not None,
            sees_arrived=sees,
        ),
        split,
    )
