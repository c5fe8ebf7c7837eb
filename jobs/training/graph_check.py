"""Does the graph help at all? The chosen scorer, fitted again with less of the graph.

Three fits, on the same train and validation nodes, from the same seed: on a node's own columns
alone, on them and the numbers of its relationships, and with the ends of the relationships permuted
within each type. No calibration or holdout node is looked at, so no promise depends on it.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.progress import Progress
from ringfence.jobs.lifecycle.graph_benefit import (
    NUMBERS,
    OWN_COLUMNS,
    PERMUTED,
    GraphBenefit,
    OtherFit,
)
from ringfence.jobs.project.network_inputs import InputChange, count_columns, permute_ends
from ringfence.jobs.training.chosen_fit import OnEpoch
from ringfence.jobs.training.fit import fit_to, outputs_inside
from ringfence.jobs.training.fitted import FittedNetwork
from ringfence.jobs.training.fitted_trees import FittedBlend, blend, tree_column_names
from ringfence.jobs.training.network_family import FittedInputs
from ringfence.jobs.training.several_labels import EncodedColumns
from ringfence.jobs.training.split import Split
from ringfence.models.baselines.held_out import column_shares
from ringfence.models.networks.registry import is_trees
from ringfence.models.schema import CLASSIFIED
from ringfence.models.scores import softmax64
from ringfence.models.trees.columns import tree_columns

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CHECKED = (OWN_COLUMNS, NUMBERS, PERMUTED)
TWO_SIDED_95 = 1.96
MIN_SHARE_NAMED = 0.3  # of the class that a column of neighbours tells, to be named as a leak
NAMED = 3


def check_graph_benefit(
    mirror_size: int,
    split: Split,
    fitted: FittedNetwork,
    on_epoch: OnEpoch,
    progress: Progress,
) -> GraphBenefit:
    """Fit the scorer of a new version again with less of the graph, and compare."""
    begun = time.perf_counter()
    losses, accuracy = judge_fit(split, fitted)
    others, fits = [], 0
    for number, name in enumerate(CHECKED):
        progress("fits with less of the graph", number, len(CHECKED))
        other = fit_again_on(fitted, name, split, mirror_size, on_epoch)
        fits += 2 if isinstance(other, FittedBlend) else 1
        others.append(_compare(name, *judge_fit(split, other), losses))
    benefit = GraphBenefit(
        len(split.validation),
        float(losses.mean()),
        accuracy,
        tuple(others),
        fits,
        round(time.perf_counter() - begun, 3),
    )
    if not benefit.is_suspicious:
        return benefit
    return replace(benefit, leak=name_leak(fitted.inputs, split))


def change_inputs(name: str, inputs: FittedInputs, split: Split, mirror_size: int) -> FittedInputs:
    """Return what a fit of this name reads in place of the graph.

    Trees count neighbours up to a node's own time; permuted ends would change these counts, so the
    real ones stand beside them.
    """
    rows = np.concatenate([split.train, split.validation])
    real = edges = np.empty((3, 0), np.int64)
    columns = np.empty((mirror_size, 0), np.float32)
    if name == PERMUTED:
        real = inputs.relationships_among(rows)
        edges = permute_ends(real, inputs.settings.seed)
    if name == NUMBERS:
        counts = inputs.count_neighbours(rows)
    elif name == PERMUTED and is_trees(inputs.settings.network):
        counts = inputs.count_heard(rows)
    else:
        counts = columns[rows]
    if counts.shape[1]:
        columns = count_columns(mirror_size, rows, counts, split.train)
    return inputs.changed(InputChange(edges, columns, real))


def fit_again_on(
    fitted: FittedNetwork, name: str, split: Split, mirror_size: int, on_epoch: OnEpoch
) -> FittedNetwork:
    """Fit the same scorer, with its own settings, on less of the graph."""
    if isinstance(fitted, FittedBlend):
        return blend(
            fit_again_on(fitted.network, name, split, mirror_size, on_epoch),
            fit_again_on(fitted.trees, name, split, mirror_size, on_epoch),
            split,
        )
    weighed = fitted.trained.recipe.class_weights is not None
    inputs = change_inputs(name, fitted.inputs, split, mirror_size)
    return fit_to(inputs, split, on_epoch, weighed)


def judge_fit(split: Split, fitted: FittedNetwork) -> tuple[Floats, float]:
    """Return the log loss of each validation node [n], and accuracy."""
    rows = np.concatenate([split.validation, split.train])
    n, truth = len(split.validation), split.class_indices[split.validation]
    chances = softmax64(outputs_inside(split, fitted, rows).logits[:n])
    losses = -np.log(np.maximum(chances[np.arange(n), truth], np.finfo(np.float64).tiny))
    return losses, float((chances.argmax(axis=1) == truth).mean())


def _compare(name: str, losses: Floats, accuracy: float, version: Floats) -> OtherFit:
    """The difference node by node with its interval, of the same nodes."""
    gains = losses - version
    mean, n = float(gains.mean()), len(gains)
    half = TWO_SIDED_95 * float(gains.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return OtherFit(name, float(losses.mean()), accuracy, mean, mean - half, mean + half)


def name_leak(inputs: FittedInputs, split: Split) -> str:
    """Return the columns of neighbours that tell most of the class of validation nodes."""
    if not isinstance(inputs, EncodedColumns):
        return "the features of neighbours"
    rows = np.concatenate([split.train, split.validation])
    table = tree_columns(inputs.tree_inputs(rows), rows)
    names = tree_column_names(inputs)
    first = inputs.encoders.tables[CLASSIFIED].width  # means of relationships stand behind it
    shares = column_shares(table[:, first:], split.class_indices[rows], len(split.train))
    best = np.argsort(-shares, kind="stable")[:NAMED]
    named = [
        f"{names[first + at]} ({100 * shares[at]:.0f} % of the class)"
        for at in best
        if shares[at] >= MIN_SHARE_NAMED
    ]
    return ", ".join(named)
