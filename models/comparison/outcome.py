"""Predictions of one way for some nodes, and its metrics under any weights of the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PROBABILITY_FLOOR = 1e-6
"""A true class gets at least this much in the log loss: one that a model does not know has none."""

HIGHER_IS_BETTER = {
    "accuracy": True,
    "macro_f1": True,
    "log_loss": False,
    "set_size": False,
    "singleton_hits": True,
}
"""The metrics, and in which direction each is better; those of sets only where there are sets."""

OF_SETS = ("set_size", "singleton_hits")


@dataclass(frozen=True, slots=True)
class Sets:
    """Prediction sets of the nodes: their sizes [n], and which hold the true class [n]."""

    sizes: Ints
    covered: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Probabilities of the nodes' classes [n, classes], and their sets where there are any."""

    name: str
    chances: Floats
    sets: Sets | None = None


class Weighed:
    """An outcome's metrics under any weights of its nodes; per-node values are computed once."""

    def __init__(self, outcome: Outcome, truth: Ints) -> None:
        n, classes = outcome.chances.shape
        self.classes = classes
        self.cells = truth * classes + outcome.chances.argmax(axis=1)
        self.loss = -np.log(np.maximum(outcome.chances[np.arange(n), truth], PROBABILITY_FLOOR))
        self.sets: tuple[Floats, ...] = ()
        if outcome.sets is not None:
            single = (outcome.sets.sizes == 1) & outcome.sets.covered
            self.sets = (outcome.sets.sizes.astype(np.float64), single.astype(np.float64))

    def metrics(self, weights: Floats) -> tuple[list[float], Floats]:
        """Return the metrics in their order, and recall by class (NaN if it has no nodes)."""
        total = weights.sum()
        cells = np.bincount(self.cells, weights, self.classes**2)
        confusion = cells.reshape(self.classes, self.classes)
        hits, true_counts, said = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
        there = true_counts > 0
        f1 = 2 * hits[there] / (true_counts + said)[there]
        recall = np.divide(hits, true_counts, out=np.full(self.classes, np.nan), where=there)
        values = [hits.sum() / total, f1.mean(), weights @ self.loss / total]
        values += [weights @ column / total for column in self.sets]
        return [float(value) for value in values], recall


def align(chances: Floats, names: Sequence[str], classes: Sequence[str]) -> Floats:
    """Return probabilities in another order of classes; one that a model does not know has none.

    >>> align(np.array([[0.2, 0.8]]), ["a", "c"], ["a", "b", "c"]).tolist()
    [[0.2, 0.0, 0.8]]
    """
    out = np.zeros((len(chances), len(classes)))
    for column, name in enumerate(names):
        if name in classes:
            out[:, classes.index(name)] = chances[:, column]
    return out
