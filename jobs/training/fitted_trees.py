"""Boosted trees, and blends of them with a network, fitted to a split of a graph with raw columns.

Trees read the columns of `models.trees.columns`. They are grown on the graph as it was when the
latest of their train and validation nodes had arrived, so that these have as many neighbours as
nodes have in a run. No class but theirs is looked at.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.connector.errors import ModelError
from ringfence.connector.json_types import JsonObject
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.project.columns.column_encoders import ALL_COUNTS, CONTEXT_COUNTS
from ringfence.jobs.project.model_files import TREE_COUNTS_KEY, TREE_RECIPE_KEY
from ringfence.jobs.training.fitted import FittedNetwork, SubgraphOutputs
from ringfence.jobs.training.several_labels import EncodedColumns
from ringfence.jobs.training.split import Split
from ringfence.jobs.training.warm_start import WarmStart
from ringfence.models.networks.registry import BLEND, TREES
from ringfence.models.schema import CLASSIFIED
from ringfence.models.training.boosted_trees import (
    LEARNING_RATE,
    LEAVES,
    PATIENCE,
    TreeTable,
    grow_trees,
)
from ringfence.models.training.loop import Recipe
from ringfence.models.training.train import balancing_weights
from ringfence.models.trees.blend import blend_logits
from ringfence.models.trees.columns import column_names, tree_columns
from ringfence.models.trees.ensemble import TreeEnsemble
from ringfence.models.trees.forward import forward_trees

Ints = NDArray[np.int64]

COLUMNS_KEY = "tree_columns"  # of a manifest: names of the columns that trees compare
BYTES_PER_CELL = 24  # float32 and float64 copies, bins and histograms of a column of a node


@dataclass(frozen=True, slots=True)
class FittedTrees(FittedNetwork):
    """Trees and the encoders of their columns."""

    def manifest_facts(self) -> JsonObject:
        """Return the encoders, and the names of the columns."""
        columns = encoded_inputs(self.inputs)
        facts = {**columns.manifest_facts(), "network": TREES, "options": {"leaves": LEAVES}}
        counts = ALL_COUNTS if columns.rule.classified else CONTEXT_COUNTS
        return facts | {COLUMNS_KEY: tree_column_names(columns), TREE_COUNTS_KEY: counts}

    def outputs_inside(self, rows: Ints, classes: int) -> SubgraphOutputs:
        """Evaluate the trees on the subgraph of `rows` with all context."""
        columns = encoded_inputs(self.inputs)
        trees = TreeEnsemble.from_arrays(self.weights)
        logits = forward_trees(trees, columns.tree_inputs(rows), rows, classes)
        return SubgraphOutputs(logits, columns.inner_edges(None, rows))


def fit_trees(
    inputs: EncodedColumns,
    settings: ModelSettings,
    split: Split,
    class_weights: bool,
    start: WarmStart | None,
) -> FittedTrees:
    """Grow trees on train nodes until the log loss of validation nodes stops falling."""
    rows = np.concatenate([split.train, split.validation])
    table = tree_columns(inputs.tree_inputs(rows), rows)
    cut, truth, classes = len(split.train), split.class_indices[rows], len(split.classes)
    seen = TreeTable(table[:cut], truth[:cut], table[cut:], truth[cut:], classes)
    weights = balancing_weights(torch.from_numpy(truth[:cut]), classes) if class_weights else None
    try:
        trees, trained = grow_trees(seen, tree_recipe(settings, weights))
    except ValueError as error:
        raise ModelError(
            found=f'[model] network = "trees": {error}',
            needed="two classes or more among train nodes, and validation nodes of these classes",
            next_step="label more nodes of each class, then: ringfence train",
        ) from None
    began = None if start is None else WarmStart(None, "trees are grown anew")
    return FittedTrees(trees.arrays() | inputs.arrays(), inputs, trained, began)


def tree_recipe(settings: ModelSettings, weights: tuple[float, ...] | None) -> Recipe:
    """Return how trees are grown: `patience` counts rounds, 20 where the file names none."""
    patience = settings.patience if "patience" in settings.model_fields_set else PATIENCE
    return Recipe(
        settings.seed,
        settings.learning_rate or LEARNING_RATE,
        settings.weight_decay or 0.0,
        settings.max_epochs,
        patience,
        weights,
    )


def predict_tree_bytes(inputs: EncodedColumns, rows: int) -> float:
    """Return the bytes that growing takes for so many nodes."""
    return float(rows * len(tree_column_names(inputs)) * BYTES_PER_CELL)


def tree_column_names(inputs: EncodedColumns) -> list[str]:
    """Return the names of the columns that trees compare, in their order."""
    counts = inputs.encoders.related.count_names(CLASSIFIED, inputs.rule)
    return [*column_names(inputs.schema, inputs.column_names(), inputs.rule), *counts]


def encoded_inputs(inputs: object) -> EncodedColumns:
    """Return the inputs of trees; only graphs with raw columns have any."""
    if not isinstance(inputs, EncodedColumns):
        raise TypeError(f"trees read encoded columns, not {type(inputs).__name__}")
    return inputs


@dataclass(frozen=True, slots=True)
class FittedBlend(FittedNetwork):
    """A network and trees with the same encoders; training went as the network's did."""

    network: FittedNetwork = field(kw_only=True)
    trees: FittedNetwork = field(kw_only=True)
    accuracy: float = field(kw_only=True)

    @property
    def validation_accuracy(self) -> float:
        """Accuracy of the mean on validation nodes."""
        return self.accuracy

    def manifest_facts(self) -> JsonObject:
        """Return the network's facts, the columns of trees, and how those were grown."""
        trees = self.trees.manifest_facts()
        recipe = {**asdict(self.trees.trained.recipe), "rounds": self.trees.trained.best_epoch + 1}
        return {
            **self.network.manifest_facts(),
            "network": BLEND,
            COLUMNS_KEY: trees[COLUMNS_KEY],
            TREE_COUNTS_KEY: trees[TREE_COUNTS_KEY],
            TREE_RECIPE_KEY: recipe,
        }

    def outputs_inside(self, rows: Ints, classes: int) -> SubgraphOutputs:
        """Return the mean of both on the subgraph of `rows` with all context."""
        outputs = self.network.outputs_inside(rows, classes)
        trees = self.trees.outputs_inside(rows, classes)
        return replace(outputs, logits=blend_logits(outputs.logits, trees.logits))


def blend(network: FittedNetwork, trees: FittedNetwork, split: Split) -> FittedBlend:
    """Return the blend of two scorers that were fitted to a split."""
    both = FittedBlend(
        network.weights | trees.weights,
        network.inputs,
        network.trained,
        network.start,
        network=network,
        trees=trees,
        accuracy=0.0,
    )
    rows = np.concatenate([split.validation, split.train])
    logits = both.outputs_inside(rows, len(split.classes)).logits[: len(split.validation)]
    truth = split.class_indices[split.validation]
    return replace(both, accuracy=float((logits.argmax(axis=1) == truth).mean()))
