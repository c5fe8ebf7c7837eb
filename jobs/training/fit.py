"""Fit the configured network to a split, and score the calibration nodes with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.cores import usable_openmp_threads
from ringfence.connector.errors import ModelError
from ringfence.connector.mirror import Mirror
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project import memory
from ringfence.jobs.project.network_inputs import uniforms_of
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.fitted import FittedNetwork, SubgraphOutputs
from ringfence.jobs.training.fitted_trees import encoded_inputs, fit_trees, predict_tree_bytes
from ringfence.jobs.training.network_family import FittedInputs, family_of
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.warm_start import WarmStart, begin_with
from ringfence.models.arrays import as_array
from ringfence.models.networks.registry import is_trees
from ringfence.models.networks.threads import threads_for
from ringfence.models.scores import SCORES, softmax64
from ringfence.models.training.loop import Epoch
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train

Ints = NDArray[np.int64]

LESS_MEMORY = (
    "[model] batch_size = 512 trains in parts; a smaller [model] hidden, or fewer columns, need "
    "less"
)


@dataclass(frozen=True, slots=True)
class NaiveCalibration:
    """Scores of the calibration nodes on the graph of today's labelled nodes [n], and accuracy.

    A threshold from these scores, which are kept by the score's name, is what calibrating once, at
    training time, would give.
    """

    scores: dict[str, NDArray[np.float64]]
    accuracy: float


def fit_network(
    workspace: Workspace,
    mirror: Mirror,
    split: Split,
    on_epoch: Callable[[Epoch], None] | None,
    class_weights: bool = False,
    start: WarmStart | None = None,
    *,
    sees_arrived: bool = True,
) -> FittedNetwork:
    """Train on train and validation nodes; no class of another node is looked at.

    They see each other and their context, and, where counts are columns, what had arrived by the
    latest of them; without `sees_arrived` they don't, as in the training of older versions.
    """
    learnt = np.concatenate([split.train, split.validation]) if sees_arrived else None
    family = family_of(workspace.mapping, mirror)
    inputs = family.fit_inputs(workspace.settings.model, split.train, learnt)
    return fit_to(inputs, split, on_epoch, class_weights, start)


def fit_to(
    inputs: FittedInputs,
    split: Split,
    on_epoch: Callable[[Epoch], None] | None,
    class_weights: bool = False,
    start: WarmStart | None = None,
) -> FittedNetwork:
    """Train the scorer of the inputs' settings on them."""
    settings, classes = inputs.settings, len(split.classes)
    if is_trees(settings.network):
        return _fit_trees(inputs, settings, split, class_weights, start)
    rows, cut = np.concatenate([split.train, split.validation]), len(split.train)
    batch_size = inputs.choose_batch_size(len(rows))
    refuse_without_memory(inputs.predict_bytes(len(rows), classes, batch_size))
    graph = inputs.select(rows)
    network = inputs.build_network(classes)
    initial, begun = begin_with(network, start, inputs.column_names())
    targets = TrainingTargets(
        torch.from_numpy(split.class_indices[rows]),
        torch.arange(cut),
        torch.arange(cut, len(rows)),
    )
    options = TrainingOptions(
        seed=settings.seed,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        max_epochs=settings.max_epochs,
        patience=settings.patience,
        class_weights=class_weights,
        batch_size=batch_size,
        fanouts=inputs.fanouts,
    )
    edges_at_once = 0 if batch_size else graph.edge_count  # a block is small
    with threads_for(edges_at_once, usable_openmp_threads(), settings.hidden):
        trained = train(network, graph, targets, options, on_epoch, initial)
    weights = {name: as_array(value) for name, value in trained.state.items()}
    return FittedNetwork(weights | inputs.arrays(), inputs, trained, begun)


def _fit_trees(
    inputs: FittedInputs,
    settings: ModelSettings,
    split: Split,
    class_weights: bool,
    start: WarmStart | None,
) -> FittedNetwork:
    columns = encoded_inputs(inputs)
    labelled = len(split.train) + len(split.validation)
    refuse_without_memory(predict_tree_bytes(columns, labelled), "fewer columns need less")
    return fit_trees(columns, settings, split, class_weights, start)


def refuse_without_memory(needed: float, remedy: str = LESS_MEMORY) -> None:
    """Raise `ModelError` where training needs more bytes than are free now."""
    free = memory.available()
    if needed <= free:
        return
    raise ModelError(
        found=f"training needs about {memory.format_bytes(needed)} of memory, "
        f"{memory.format_bytes(free)} are free",
        needed="memory for the pass over the graph; without it the system would end the process",
        next_step=f"{remedy}; then: ringfence train",
    )


def calibrate_naively(
    workspace: Workspace, mirror: Mirror, split: Split, fitted: FittedNetwork, seed: int
) -> NaiveCalibration:
    """Score the calibration nodes on the subgraph of all labelled nodes, as they stand today.

    `seed` is what the nodes' u is keyed with.
    """
    rows = np.concatenate([split.calibration, split.train, split.validation])
    outputs = outputs_inside(split, fitted, rows)
    n, truth = len(split.calibration), split.class_indices[split.calibration]
    every = all_scores(workspace, outputs, uniforms_of(mirror, rows, seed))
    scores = {name: values[np.arange(n), truth] for name, values in every.items()}
    accuracy = float((outputs.logits[:n].argmax(axis=1) == truth).mean())
    return NaiveCalibration(scores, accuracy)


def outputs_inside(split: Split, fitted: FittedNetwork, rows: Ints) -> SubgraphOutputs:
    """Run what was fitted on the subgraph of `rows`, with all context if there is any."""
    return fitted.outputs_inside(rows, len(split.classes))


def all_scores(
    workspace: Workspace, outputs: SubgraphOutputs, u: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return every score of all nodes of a subgraph with their own u, by name [n, classes]."""
    settings, probabilities = workspace.settings.conformal, softmax64(outputs.logits)
    return {
        name: np.asarray(
            score.all_classes(probabilities, u, **score.options_from(settings, outputs.edges))
        )
        for name, score in SCORES.items()
    }
