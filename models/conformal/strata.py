"""Strata: which calibration nodes judge which due nodes, for all classes or for one.

A rule is a choice of strata. NodeEx and EdgeEx have one that holds everybody, degree bands one per
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

EVERYBODY = ""
"""Name of the stratum that holds all nodes."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Calibration nodes and the due nodes that they judge, by their places in the lists of both.

    band: its name, one per due node under each class · class_index: the class that is judged, None
    for all · weights: of its calibration nodes, None where all count alike · test_weight: of its
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
    """Return the strata of a rule that compares everybody with everybody."""
    everybody = np.arange(calibration), np.arange(due)
    return [Stratum(EVERYBODY, *everybody, weights=weights, test_weight=test_weight)]


def strata_of_ids(calibration: Ints, due: Ints, names: Sequence[str]) -> list[Stratum]:
    """Library only: one stratum per number, nodes of number i are in the stratum called names[i].

    Args:
        calibration: numbers of the calibration nodes [n].
        due: numbers of the due nodes [m].
        names: one name per number.

    >>> found = strata_of_ids(np.array([0, 1, 1]), np.array([1]), ("north", "south"))
    >>> [(one.band, one.calibration.tolist(), one.due.tolist()) for one in found]
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
    found = []
    for one in strata:
        for y in range(n_classes):
            own = classes[one.calibration] == y
            weights = None if one.weights is None else one.weights[own]
            found.append(
                Stratum(one.band, one.calibration[own], one.due, y, weights, one.test_weight)
            )
    return found


def stratified_p_values(known: Floats, scores: Floats, strata: Sequence[Stratum]) -> Floats:
    """Return the p-value of each due node and class, judged by its stratum [m, classes].

    Args:
        known: scores of the true classes of the calibration nodes [n].
        scores: scores of the due nodes [m, classes].
        strata: who judges whom; what no stratum judges can't be excluded and has p = 1.

    >>> strata = strata_of_ids(np.array([0, 0, 1]), np.array([0, 1]), ("a", "b"))
    >>> stratified_p_values(np.array([0.2, 0.4, 0.6]), np.array([[0.3], [0.3]]), strata).tolist()
    [[0.6666666666666666], [0.5]]
    """
    found = np.ones(scores.shape)
    for one in strata:
        own = known[one.calibration]
        if one.class_index is None:
            judged = scores[one.due]
            found[one.due] = np.asarray(p_values(own, judged, one.weights, one.test_weight))
        else:
            column = scores[one.due, one.class_index]
            judged_p = p_values(own, column, one.weights, one.test_weight)
            found[one.due, one.class_index] = np.asarray(judged_p)
    return found


def stratified_thresholds(
    known: Floats, strata: Sequence[Stratum], alphas: Sequence[float], levels: Floats
) -> list[StratumThreshold]:
    """Return the threshold of every stratum at every alpha.

    Args:
        known: scores of the true classes of the calibration nodes [n].
        strata: who judges whom; the weight 1 stands for due nodes that have weights of their own.
        alphas: the shares that may be missed, as configured.
        levels: what p-values are compared with at each alpha, by class [alphas, classes].
    """
    found = []
    for alpha, by_class in zip(alphas, levels, strict=True):
        for one in strata:
            level = float(by_class[0 if one.class_index is None else one.class_index])
            test = one.test_weight if np.ndim(one.test_weight) == 0 else 1.0
            limit = float(threshold(known[one.calibration], level, one.weights, test))
            sizes = len(one.calibration), one.effective, len(one.due)
            found.append(StratumThreshold(alpha, one.band, one.class_index, level, limit, *sizes))
    return found


def bands_of(strata: Sequence[Stratum], due: int) -> list[str]:
    """Return the name of each due node's stratum; EVERYBODY where no stratum judges it."""
    names = np.full(due, EVERYBODY, object)  # texts are shared, none is made per node
    for one in strata:
        names[one.due] = one.band
    found: list[str] = names.tolist()
    return found
