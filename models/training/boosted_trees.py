"""Growing boosted trees: scikit-learn's histogram trees, stopped by the log loss of later nodes.

Trees are small, 12 leaves: those of 31, scikit-learn's default, fitted the past better and a later
period worse. They are grown on one thread, so that equal inputs give equal bits on any number of
cores. scikit-learn is imported when trees are grown, and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.training.loop import Curves, Recipe, Trained
from ringfence.models.trees.ensemble import TreeEnsemble

__all__ = ["LEAVES", "TreeTable", "grow_trees"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]

LEAVES = 12
LEARNING_RATE = 0.05
PATIENCE = 20
"""Rounds without a lower validation loss after which growing ends."""


@dataclass(frozen=True, slots=True)
class TreeTable:
    """Columns of train and validation nodes [n, d] and [m, d], their classes, all classes."""

    train: Float32s
    train_y: Ints
    validation: Float32s
    validation_y: Ints
    classes: int


def grow_trees(table: TreeTable, recipe: Recipe) -> tuple[TreeEnsemble, Trained]:
    """Grow trees until the validation loss stops falling; keep the rounds up to its lowest.

    Classes without train nodes have no trees, and their validation nodes stop nothing. A missing
    value (NaN) goes the way that lowers the training loss most.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1)).astype(np.float32)
    >>> y = (x[:, 0] > 0).astype(np.int64)
    >>> recipe = Recipe(0, 0.1, 0.0, 30, 20, None)
    >>> trees, trained = grow_trees(TreeTable(x[:150], y[:150], x[150:], y[150:], 2), recipe)
    >>> trees.rounds == trained.best_epoch + 1, trained.validation_accuracy > 0.9
    (True, True)
    """
    from threadpoolctl import threadpool_limits

    known, y = np.unique(table.train_y, return_inverse=True)
    if len(known) < 2:
        raise ValueError("all train nodes have one class; trees tell classes apart")
    judged = np.isin(table.validation_y, known)
    if not judged.any():
        raise ValueError("no validation node has a class of the train nodes; growing has no end")
    empty = np.isnan(table.train).all(axis=0)  # of a relation that no train node has: never split
    x = np.where(empty, np.float32(0), table.train)
    validation = np.where(empty, np.float32(0), table.validation[judged])
    validation_y = np.searchsorted(known, table.validation_y[judged])
    with threadpool_limits(1, user_api="openmp"):
        model = _fit(x, y, validation, validation_y, recipe, known)
        curves = _curves(model, validation, validation_y)
    best = int(np.argmin(curves.validation_loss))
    trees = _as_arrays(model, best + 1, known, len(table.train))
    return trees, Trained({}, curves, best, recipe)


def _fit(
    x: Float32s, y: Ints, validation: Float32s, validation_y: Ints, recipe: Recipe, known: Ints
) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        learning_rate=recipe.learning_rate,
        max_iter=recipe.max_epochs,
        max_leaf_nodes=LEAVES,
        l2_regularization=recipe.weight_decay,
        early_stopping=True,
        n_iter_no_change=recipe.patience,
        scoring="loss",
        random_state=recipe.seed,
    )
    later: dict[str, Any] = {"X_val": validation, "y_val": validation_y}
    if recipe.class_weights is None:
        return model.fit(x, y, **later)
    weights = np.array(recipe.class_weights)[known]
    return model.fit(
        x, y, sample_weight=weights[y], sample_weight_val=weights[validation_y], **later
    )


def _curves(model: Any, validation: Float32s, validation_y: Ints) -> Curves:
    """Losses and accuracy by round."""
    accuracy = [float((p == validation_y).mean()) for p in model.staged_predict(validation)]
    return Curves(
        tuple((-model.train_score_[1:]).tolist()),
        tuple((-model.validation_score_[1:]).tolist()),
        tuple(accuracy),
    )


def _as_arrays(model: Any, rounds: int, known: Ints, train: int) -> TreeEnsemble:
    """The first rounds of a fitted model, as arrays."""
    trees = [tree.nodes for grown in model._predictors[:rounds] for tree in grown]
    nodes = np.concatenate(trees)
    leaf = nodes["is_leaf"].astype(np.bool_)
    baseline = np.array(model._baseline_prediction, np.float64).reshape(-1)
    lowest = min(0.0, float(baseline.min()))
    return TreeEnsemble(
        baseline=baseline,
        first=np.append(0, np.cumsum([len(tree) for tree in trees])).astype(np.int64),
        column=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int64),
        threshold=nodes["num_threshold"].astype(np.float64),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        value=nodes["value"].astype(np.float64),
        known=known.astype(np.int64),
        unseen=np.array([lowest - math.log(2 * train)]),
    )
