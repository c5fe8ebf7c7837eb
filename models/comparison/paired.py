"""Metrics of several ways to predict the same nodes, with paired intervals of their differences.

Intervals are those of the percentile bootstrap over nodes: nodes are drawn with replacement, the
same ones for every way, so that what is hard for all of them cancels out of a difference. They hold
for this comparison alone and treat nodes as independent draws; for a few dozen nodes they are
somewhat too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.comparison.outcome import HIGHER_IS_BETTER, OF_SETS, Outcome, Weighed

CONFIDENCE = 0.95
REPLICATES = 1_000
MANY_NODES, REPLICATES_OF_MANY = 100_000, 200
METHOD = "paired percentile bootstrap over nodes"


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its bootstrap interval; NaN where it can't be computed."""

    value: float
    low: float
    high: float

    def as_json(self) -> list[float | None]:
        """Return value, low and high, as JSON takes them."""
        return [round(part, 6) if np.isfinite(part) else None for part in self.parts]

    @property
    def parts(self) -> tuple[float, float, float]:
        """Value, low and high."""
        return self.value, self.low, self.high


@dataclass(frozen=True, slots=True)
class Compared:
    """Metrics of one way, or their differences between two: by name, and recall by class."""

    metrics: dict[str, Interval]
    recall: dict[str, Interval]

    def as_json(self) -> dict[str, Any]:
        """Return the intervals by name."""
        return {
            "metrics": {name: interval.as_json() for name, interval in self.metrics.items()},
            "recall": {name: interval.as_json() for name, interval in self.recall.items()},
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several ways on the same nodes: `own` metrics, and `difference(a, b)` = a - b."""

    names: tuple[str, ...]
    classes: tuple[str, ...]
    class_nodes: tuple[int, ...]
    metrics: NDArray[np.float64]
    recall: NDArray[np.float64]
    with_sets: tuple[bool, ...]

    @property
    def nodes(self) -> int:
        """How many nodes were compared."""
        return sum(self.class_nodes)

    def own(self, name: str) -> Compared:
        """Return the metrics of one way."""
        at = self.names.index(name)
        return self._compared(self.metrics[:, at], self.recall[:, at], self.with_sets[at])

    def difference(self, name: str, other: str) -> Compared:
        """Return by how much the metrics of one way lie above those of another one."""
        a, b = self.names.index(name), self.names.index(other)
        both = self.with_sets[a] and self.with_sets[b]
        metrics, recall = self.metrics, self.recall
        return self._compared(metrics[:, a] - metrics[:, b], recall[:, a] - recall[:, b], both)

    def _compared(
        self, metrics: NDArray[np.float64], recall: NDArray[np.float64], sets: bool
    ) -> Compared:
        """Row 0 is the nodes as they are, the others are draws of them."""
        shown = [name for name in HIGHER_IS_BETTER if sets or name not in OF_SETS]
        places = {name: at for at, name in enumerate(HIGHER_IS_BETTER)}
        return Compared(
            {name: _interval(metrics[:, places[name]]) for name in shown},
            {
                name: _interval(recall[:, at])
                for at, name in enumerate(self.classes)
                if self.class_nodes[at]
            },
        )


def compare(
    truth: NDArray[np.int64], classes: Sequence[str], outcomes: Sequence[Outcome], seed: int = 0
) -> Comparison:
    """Compare ways to predict nodes of known class.

    Args:
        truth: the nodes' classes, as places in `classes` [n].
        classes: names of all classes.
        outcomes: what each way says; their columns follow `classes`.
        seed: of the draws.

    >>> sure = np.array([[0.9, 0.1], [0.2, 0.8], [0.9, 0.1], [0.1, 0.9]])
    >>> found = compare(np.array([0, 1, 0, 1]), ["a", "b"], [Outcome("x", sure)])
    >>> found.own("x").metrics["accuracy"]
    Interval(value=1.0, low=1.0, high=1.0)
    """
    n, ways = len(truth), [Weighed(outcome, truth) for outcome in outcomes]
    replicates = REPLICATES if n <= MANY_NODES else REPLICATES_OF_MANY
    rng = np.random.default_rng(seed)
    shape = replicates + 1, len(ways)
    metrics = np.full((*shape, len(HIGHER_IS_BETTER)), np.nan)
    recall = np.full((*shape, len(classes)), np.nan)
    for row in range(replicates + 1):
        weights = np.ones(n)
        if row:
            weights = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        for at, way in enumerate(ways):
            values, recall[row, at] = way.metrics(weights)
            metrics[row, at, : len(values)] = values
    counts = np.bincount(truth, minlength=len(classes))
    return Comparison(
        tuple(outcome.name for outcome in outcomes),
        tuple(classes),
        tuple(counts.tolist()),
        metrics,
        recall,
        tuple(outcome.sets is not None for outcome in outcomes),
    )


def _interval(values: NDArray[np.float64]) -> Interval:
    drawn = values[1:][np.isfinite(values[1:])]
    if not len(drawn):
        return Interval(float(values[0]), np.nan, np.nan)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(values[0]), float(low), float(high))
