"""What drift may cost a promise whose calibration nodes count less with age: Barber's gap.

    P(true class in set) >= 1 - alpha - gap,   gap = sum of w_i d_i / (sum of w_i + w_test)

Barber, Candès, Ramdas, Tibshirani 2023. d_i is the total-variation distance between the data and
the data with node i and the evaluated node exchanged; no data can give it. What can be computed is
the gap under an assumption: where nodes are independent and their law moves by at most `rate` a
day, two nodes whose ages differ by a days are min(1, rate a) apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.models.guarantee.law import coverage_loss, swap_distance

if TYPE_CHECKING:
    from ringfence.models.conformal.strata import Stratum

Floats = NDArray[np.float64]
RATES_PER_DAY = (0.0001, 0.001, 0.01)
"""Changes of the law per day, as total-variation distances, for which the gap is said."""

GAP_WORDS = "if the law of independent nodes moves by at most"
"""How the sentence on a run's gap begins."""


def drift_gap(
    strata: Sequence[Stratum],
    calibration_days: Floats,
    due_days: Floats,
    rate: float,
    *,
    weighted: bool = True,
) -> float:
    """Return the largest gap of any stratum with due nodes, for its worst due node.

    Args:
        strata: which calibration nodes a p-value is computed from, with their weights.
        calibration_days: ages of the calibration nodes in days [n].
        due_days: ages of the due nodes in days [m].
        rate: how far the law of a node moves per day at most, in total variation.
        weighted: with the weights of the strata; False gives the gap that equal weights have.

    Returns:
        At most 1; 0 without due nodes.
    """
    gaps = [
        _stratum_gap(stratum, calibration_days, due_days, rate, weighted=weighted)
        for stratum in strata
        if len(stratum.due) and len(stratum.calibration)
    ]
    return max(gaps, default=0.0)


def _stratum_gap(
    stratum: Stratum, calibration_days: Floats, due_days: Floats, rate: float, *, weighted: bool
) -> float:
    ages, due = calibration_days[stratum.calibration], due_days[stratum.due]
    apart = np.maximum(np.abs(ages - due.min()), np.abs(ages - due.max()))
    distances = swap_distance(np.minimum(rate * apart, 1.0))
    weights = np.ones(len(ages))
    test_weight = 1.0
    if weighted and stratum.weights is not None:
        weights, test_weight = stratum.weights, float(np.min(stratum.test_weight))
    return coverage_loss(weights, distances, test_weight)


def describe_drift_gap(
    strata: Sequence[Stratum], calibration_days: Floats, due_days: Floats
) -> str:
    """Say what drift may cost under each of the assumed rates, with the weights and without."""
    with_weights = [drift_gap(strata, calibration_days, due_days, rate) for rate in RATES_PER_DAY]
    without = [
        drift_gap(strata, calibration_days, due_days, rate, weighted=False)
        for rate in RATES_PER_DAY
    ]
    return (
        f"{GAP_WORDS} {_percents(RATES_PER_DAY)} % a day "
        f"(total variation, an assumption), drift costs the promise at most "
        f"{_points(with_weights)} points (without the weights {_points(without)})"
    )


def _percents(shares: Sequence[float]) -> str:
    return _join([f"{100 * share:g}" for share in shares])


def _points(shares: Sequence[float]) -> str:
    return _join([f"{100 * share:.1f}" for share in shares])


def _join(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} or {texts[-1]}"
