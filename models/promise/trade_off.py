"""The cost of a promise to miss at most a share of a class, to help choose that share.

In the words that people use for a two-class question, for one class: the miss rate (share of its
nodes whose set does not hold it), the alert rate (share of all nodes whose set holds it), and
precision (share of alerts that are of the class). Rates come from labelled nodes that do not
calibrate; each class counts with the share that it has among all labelled nodes, since the split
may have given a rare class other shares than the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.rank import rank

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Expected rates of one class at one alpha; precision is None if there is no alert.

    in_every_set says that the class has too few calibration nodes for this alpha.
    """

    alpha: float
    miss_rate: float
    alert_rate: float
    precision: float | None
    in_every_set: bool


def trade_off(
    scores: Floats,
    classes: Ints,
    class_: int,
    priors: Floats,
    alphas: Sequence[float] = ALPHAS,
    calibration: int | None = None,
) -> list[TradeOff]:
    """Return miss rate, alert rate and precision of a class for several alphas.

    A node of the class is judged by the others of the class, a node of another class by all of
    them: no node is compared with itself.

    Args:
        scores: score of `class_` at every node that rates are measured on [n].
        classes: true classes of those nodes [n].
        class_: the class that alerts are about.
        priors: share of each class among all labelled nodes [classes].
        alphas: the shares to try.
        calibration: calibration nodes of the class, which decide how often it will be missed; as
            many as it has among the given nodes by default.

    >>> scores = np.array([0.9, 0.8, 0.7, 0.6, 0.65, 0.1, 0.1, 0.1])
    >>> classes = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    >>> row = trade_off(scores, classes, 1, np.array([0.5, 0.5]), alphas=[0.25])[0]
    >>> row.miss_rate, row.alert_rate, round(row.precision, 3)
    (0.2, 0.525, 0.762)
    """
    of_class = np.sort(scores[classes == class_])
    many = len(of_class) if calibration is None else calibration
    return [_row(scores, classes, class_, priors, of_class, alpha, many) for alpha in alphas]


def _row(
    scores: Floats,
    classes: Ints,
    class_: int,
    priors: Floats,
    of_class: Floats,
    alpha: float,
    calibration: int,
) -> TradeOff:
    missed = rank(calibration, alpha)
    if missed == 0 or not len(of_class):
        return TradeOff(alpha, 0.0, 1.0, float(priors[class_]), True)
    miss_rate = missed / (calibration + 1)
    place = missed if calibration == len(of_class) else max(1, rank(len(of_class), miss_rate))
    threshold = of_class[place - 1] if place <= len(of_class) else np.inf
    alerts = np.array(
        [
            1.0 - miss_rate if y == class_ else _share(scores[classes == y] >= threshold)
            for y in range(len(priors))
        ]
    )
    alert_rate = float(priors @ alerts)
    precision = float(priors[class_] * alerts[class_] / alert_rate) if alert_rate > 0 else None
    return TradeOff(alpha, miss_rate, alert_rate, precision, False)


def _share(mask: NDArray[np.bool_]) -> float:
    return float(mask.mean()) if len(mask) else 0.0
