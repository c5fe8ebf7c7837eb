"""Fit the configured network to a split, and score the calibration nodes with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.errors import ConfigError
from ringfence.connector.mirror import Mirror
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project.network_inputs import Scaling, edge_index, induced, uniforms_of
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.setup import memory
from ringfence.jobs.training.room import refuse_without_memory
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.typed_fit import TypedFit, fit_typed, typed_outputs_inside
from ringfence.jobs.training.warm_start import WarmStart, begin_with
from ringfence.models.arrays import as_array
from ringfence.models.networks.factory import build
from ringfence.models.networks.threads import threads_for
from ringfence.models.scores import SCORES, softmax64
from ringfence.models.training.full_batch import train
from ringfence.models.training.loop import Epoch, Trained
from ringfence.models.training.minibatch import train_in_batches

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """Weights by name, the features' scaling that belongs to them, and how training went.

    With several labels `typed` has schema and encoders; the weights have the encoders' arrays too.
    `start` says what it began with, None where no warm start was asked for.
    """

    weights: dict[str, NDArray[Any]]
    scaling: Scaling
    trained: Trained
    typed: TypedFit | None = None
    start: WarmStart | None = None

    def digest(self) -> str:
        """Return a hash over all weights."""
        digest = hashlib.sha256()
        for name, value in sorted(self.weights.items()):
            digest.update(name.encode() + value.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class NaiveCalibration:
    """Scores of the calibration nodes on the graph of today's labelled nodes [n], and accuracy.

    A threshold from these scores, which are kept by the score's name, is what calibrating once, at
    training time, would give.
    """

    scores: dict[str, NDArray[np.float64]]
    accuracy: float


def network_options(settings: ModelSettings) -> dict[str, Any]:
    """Return the options of the network's constructor."""
    options: dict[str, Any] = {"hidden": settings.hidden}
    if settings.dropout is not None:
        options["dropout"] = settings.dropout
    return options


def fit_network(
    workspace: Workspace,
    mirror: Mirror,
    split: Split,
    on_epoch: Callable[[Epoch], None] | None,
    class_weights: bool = False,
    start: WarmStart | None = None,
) -> FittedNetwork:
    """Train on the subgraph that train and validation nodes induce, and on nothing else."""
    settings = workspace.settings.model
    if mirror.typed is not None and workspace.mapping.typed is not None:
        typed, trained, begun = fit_typed(
            mirror.typed, workspace.mapping.typed, settings, split, on_epoch, class_weights, start
        )
        weights = {name: as_array(value) for name, value in trained.state.items()}
        nothing = Scaling(np.empty(0, np.float32), np.empty(0, np.float32))
        return FittedNetwork(weights | typed.encoders.arrays(), nothing, trained, typed, begun)
    rows = np.concatenate([split.train, split.validation])
    edges = induced(edge_index(mirror, workspace.mapping), rows, mirror.size)
    scaling = Scaling.of(mirror.features[split.train])
    cut = len(split.train)
    batches = {"batch_size": size} if (size := settings.fixed_batch_size) else {}
    if not batches:
        refuse_without_memory(_full_pass_bytes(mirror, settings, split, len(rows)))
    network = _new_network(settings, mirror.width, len(split.classes))
    initial, begun = begin_with(network, start)
    with threads_for(edges.shape[1], settings.hidden):
        trained = (train_in_batches if batches else train)(
            network,
            torch.from_numpy(scaling(mirror.features[rows])),
            torch.from_numpy(edges),
            torch.from_numpy(split.class_indices[rows]),
            torch.arange(cut),
            torch.arange(cut, len(rows)),
            seed=settings.seed,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            max_epochs=settings.max_epochs,
            patience=settings.patience,
            class_weights=class_weights,
            on_epoch=on_epoch,
            initial=initial,
            **batches,
        )
    weights = {name: as_array(value) for name, value in trained.state.items()}
    return FittedNetwork(weights, scaling, trained, start=begun)


def _full_pass_bytes(mirror: Mirror, settings: ModelSettings, split: Split, rows: int) -> float:
    """What training on the subgraph of so many rows takes besides Python itself."""
    nodes = max(mirror.node_count, 1)
    need = memory.predict(
        nodes, mirror.edge_count, mirror.width, settings.hidden, len(split.classes), rows / nodes
    )
    return need.train - memory.BASE_BYTES


def calibrate_naively(
    workspace: Workspace, mirror: Mirror, split: Split, fitted: FittedNetwork
) -> NaiveCalibration:
    """Score the calibration nodes on the subgraph of all labelled nodes, as they stand today."""
    rows = np.concatenate([split.calibration, split.train, split.validation])
    outputs = outputs_inside(workspace, mirror, split, fitted, rows)
    n, truth = len(split.calibration), split.class_indices[split.calibration]
    every = all_scores(workspace, outputs)
    scores = {name: values[np.arange(n), truth] for name, values in every.items()}
    accuracy = float((outputs.logits[:n].argmax(axis=1) == truth).mean())
    return NaiveCalibration(scores, accuracy)


@dataclass(frozen=True, slots=True)
class SubgraphOutputs:
    """Outputs of a network on the subgraph of some nodes: logits, their own u, edges by place."""

    logits: NDArray[Any]
    u: NDArray[np.float64]
    edges: NDArray[np.int64]


def outputs_inside(
    workspace: Workspace, mirror: Mirror, split: Split, fitted: FittedNetwork, rows: Ints
) -> SubgraphOutputs:
    """Run the fitted network on the subgraph that `rows` induce."""
    edges = induced(edge_index(mirror, workspace.mapping), rows, mirror.size)
    logits = _logits_inside(workspace, mirror, split, fitted, rows, edges)
    u = uniforms_of(mirror, rows, workspace.settings.model.seed)
    return SubgraphOutputs(logits, u, edges)


def all_scores(workspace: Workspace, outputs: SubgraphOutputs) -> dict[str, NDArray[np.float64]]:
    """Return every score of all nodes of a subgraph, by name [n, classes]."""
    settings, probabilities = workspace.settings.conformal, softmax64(outputs.logits)
    given = {
        "edge_index": outputs.edges,
        "diffusion": settings.diffusion,
        "penalty": settings.penalty,
        "k_reg": settings.k_reg,
    }
    return {
        name: np.asarray(
            score.all_classes(
                probabilities, outputs.u, **{option: given[option] for option in score.options}
            )
        )
        for name, score in SCORES.items()
    }


def _logits_inside(
    workspace: Workspace,
    mirror: Mirror,
    split: Split,
    fitted: FittedNetwork,
    rows: Ints,
    edges: Ints,
) -> NDArray[np.float32]:
    """Run the fitted network on the subgraph that `rows` induce; with all context, if there is."""
    settings, classes = workspace.settings.model, len(split.classes)
    if fitted.typed is not None and mirror.typed is not None and workspace.mapping.typed:
        return typed_outputs_inside(
            mirror.typed, workspace.mapping.typed, settings, fitted.typed, fitted.trained, classes,
            rows,
        )  # fmt: skip
    network = build(settings.network, mirror.width, classes, **network_options(settings))
    network.load_state_dict(fitted.trained.state)
    features = torch.from_numpy(fitted.scaling(mirror.features[rows]))
    with torch.no_grad():
        return as_array(network.eval()(features, torch.from_numpy(edges)))


def _new_network(settings: ModelSettings, in_features: int, classes: int) -> torch.nn.Module:
    """Return the configured network, untrained; a `ConfigError` where there is no such one."""
    try:
        return build(
            settings.network, in_features, classes, seed=settings.seed, **network_options(settings)
        )
    except ValueError as error:
        raise ConfigError(
            found=f"[model] network: {error}",
            needed="a network that ringfence has, or a module of your own that passes its checks",
        ) from None
