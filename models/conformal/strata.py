"""Strata: the calibration nodes that p-values of due nodes are computed from, by class or for all.

A rule is a choice of strata. NodeEx and EdgeEx have one that holds all nodes, degree bands one per
band (`bands`), a promise per class one per class, one per group the groups. What is computed inside
a stratum is always the same: p-values of its due nodes against the scores of its calibration nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.sets import p_values, threshold
from ringfence.models.guarantee.law import effective_sample_size

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALL_NODES = ""
"""Name of the stratum that holds all nodes."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Calibration nodes, and the due nodes that are compared with them, by place in both lists.

    band: its name, one per due node under each class · class_index: the class of the p-values, None
    for all · weights: of its calibration nodes, None if all weigh the same · test_weight: of its
    due nodes, one number or one each.
    """

    band: str
    calibration: Ints
    due: Ints
    class_index: int | None = None
    weights: Floats | None = None
    test_weight: Any = 1.0

    @property
    def effective(self) -> float:
        """How many equally weighted calibration nodes it is worth."""
        if self.weights is None:
            return float(len(self.calibration))
        return effective_sample_size(self.weights)


@dataclass(frozen=True, slots=True)
class StratumThreshold:
    """The threshold of one stratum at one alpha; -inf where nothing can be excluded."""

    alpha: float
    band: str
    class_index: int | None
    level: float
    threshold: float
    n_calibration: int
    effective_calibration: float
    n_evaluated: int


def one_stratum(
    calibration: int, due: int, weights: Floats | None = None, test_weight: Any = 1.0
) -> list[Stratum]:
    """Return the strata of a rule that compares all due nodes with all calibration nodes."""
    everybody = np.arange(calibration), np.arange(due)
    return [Stratum(ALL_NODES, *everybody, weights=weights, test_weight=test_weight)]


def strata_of_ids(calibration: Ints, due: Ints, names: Sequence[str]) -> list[Stratum]:
    """Library only: one stratum per number, nodes of number i are in the stratum called names[i].

    Args:
        calibration: numbers of the calibration nodes [n].
        due: numbers of the due nodes [m].
        names: one name per number.

    >>> strata = strata_of_ids(np.array([0, 1, 1]), np.array([1]), ("north", "south"))
    >>> [(part.band, part.calibration.tolist(), part.due.tolist()) for part in strata]
    [('south', [1, 2], [0])]
    """
    return [
        Stratum(name, np.flatnonzero(calibration == i), np.flatnonzero(due == i))
        for i, name in enumerate(names)
        if (due == i).any()
    ]


def within_classes(strata: Sequence[Stratum], classes: Ints, n_classes: int) -> list[Stratum]:
    """Return strata split by class; nodes of class y alone calibrate class y.

    Args:
        strata: of all classes together.
        classes: true classes of the calibration nodes [n].
        n_classes: how many classes there are.
    """
    divided = []
    for stratum in strata:
        for y in range(n_classes):
            inside = classes[stratum.calibration] == y
            weights = None if stratum.weights is None else stratum.weights[inside]
            divided.append(
                Stratum(
                    stratum.band,
                    stratum.calibration[inside],
                    stratum.due,
                    y,
                    weights,
                    stratum.test_weight,
                )
            )
    return divided


def stratified_p_values(known: Floats, scores: Floats, strata: Sequence[Stratum]) -> Floats:
    """Return the p-value of each due node and class, computed in its stratum [m, classes].

    Args:
        known: scores of the true classes of the calibration nodes [n].
        scores: scores of the due nodes [m, classes].
        strata: which calibration nodes each due node is compared with; a class without a
            stratum can't be excluded and has p = 1.

    >>> strata = strata_of_ids(np.array([0, 0, 1]), np.array([0, 1]), ("a", "b"))
    >>> stratified_p_values(np.array([0.2, 0.4, 0.6]), np.array([[0.3], [0.3]]), strata).tolist()
    [[0.6666666666666666], [0.5]]
    """
    p = np.ones(scores.shape)
    for stratum in strata:
        calibration_scores = known[stratum.calibration]
        if stratum.class_index is None:
            due_scores = scores[stratum.due]
            p[stratum.due] = np.asarray(
                p_values(calibration_scores, due_scores, stratum.weights, stratum.test_weight)
            )
        else:
            column = scores[stratum.due, stratum.class_index]
            p_of_class = p_values(calibration_scores, column, stratum.weights, stratum.test_weight)
            p[stratum.due, stratum.class_index] = np.asarray(p_of_class)
    return p


def stratified_thresholds(
    known: Floats, strata: Sequence[Stratum], alphas: Sequence[float], levels: Floats
) -> list[StratumThreshold]:
    """Return the threshold of every stratum at every alpha.

    Args:
        known: scores of the true classes of the calibration nodes [n].
        strata: the strata; due nodes that have weights of their own are represented by weight 1.
        alphas: the shares that may be missed, as configured.
        levels: what p-values are compared with at each alpha, by class [alphas, classes].
    """
    thresholds = []
    for alpha, by_class in zip(alphas, levels, strict=True):
        for stratum in strata:
            level = float(by_class[0 if stratum.class_index is None else stratum.class_index])
            test = stratum.test_weight if np.ndim(stratum.test_weight) == 0 else 1.0
            limit = float(threshold(known[stratum.calibration], level, stratum.weights, test))
            sizes = len(stratum.calibration), stratum.effective, len(stratum.due)
            thresholds.append(
                StratumThreshold(alpha, stratum.band, stratum.class_index, level, limit, *sizes)
            )
    return thresholds


def bands_of(strata: Sequence[Stratum], due: int) -> list[str]:
    """Return the name of each due node's stratum; ALL_NODES where it is in none."""
    names = np.full(due, ALL_NODES, object)  # one shared string per stratum instead of one per node
    for stratum in strata:
        names[stratum.due] = stratum.band
    bands: list[str] = names.tolist()
    return bands
