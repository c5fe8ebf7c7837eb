"""Library only: a permutation test whether evaluated nodes conform as the calibration nodes do.

Under exchangeability the true-class scores of calibration and evaluated nodes, all on the same
graph G_t, could be swapped freely. So a statistic of the two groups is compared with the same
statistic after random reshuffles of the group membership; with B reshuffles

    p = (1 + number of reshuffles with a statistic at least as large) / (B + 1)

is valid at every sample size: P(p <= a) <= a, without asymptotics. The test is valid for a single
look; for repeated looks use the martingales.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """Outcome of a permutation test of calibration against evaluated scores.

    statistic: two-sample Anderson-Darling distance of the scores. higher: the share of pairs in
    which the evaluated node conforms more than the calibration node, ties half; 1/2 if alike.
    """

    p_value: float
    statistic: float
    higher: float
    calibration: int
    evaluated: int
    permutations: int

    def describe(self, level: float = 0.01) -> str:
        """The finding for a person."""
        sizes = f"{self.evaluated} evaluated and {self.calibration} calibration nodes"
        if self.p_value > level:
            return f"{sizes} conform alike (p = {self.p_value:.3g})"
        how = "more" if self.higher > 0.5 else "less"
        return (
            f"{sizes} do not conform alike (p = {self.p_value:.3g}): an evaluated node conforms "
            f"{how} than a calibration node in {max(self.higher, 1 - self.higher):.0%} of pairs"
        )


def permutation_test(
    calibration_scores: npt.ArrayLike,
    evaluated_scores: npt.ArrayLike,
    *,
    seed: int,
    permutations: int = 999,
) -> PermutationTest:
    """Test whether true-class scores [n] and [m], on the same graph, are exchangeable.

    The statistic is the two-sample Anderson-Darling distance (Pettitt 1976), which sees shifts as
    well as heavier tails:

        sum over pooled distinct values of (F_n - G_m)^2 / (H (1 - H)) * share, H the pooled cdf

    For NodeEx. Under EdgeEx degrees differ between the groups by design; compare within
    `degree_strata` there.

    >>> rng = np.random.default_rng(0)
    >>> permutation_test(rng.normal(size=80), rng.normal(size=200), seed=1).p_value > 0.05
    True
    >>> permutation_test(rng.normal(size=80), rng.normal(-1, 1, size=200), seed=1).p_value
    0.001
    """
    first = np.asarray(calibration_scores, dtype=np.float64)
    second = np.asarray(evaluated_scores, dtype=np.float64)
    _check(first, second, permutations)
    _, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    weights, last = _tail_weights(place)
    evaluated = np.repeat([0.0, 1.0], [len(first), len(second)])[np.argsort(place, kind="stable")]
    observed = _distance(evaluated, last, weights)
    rng = np.random.default_rng(seed)
    larger = sum(
        _distance(rng.permutation(evaluated), last, weights) >= observed * (1 - 1e-12)
        for _ in range(permutations)
    )
    return PermutationTest(
        (1 + int(larger)) / (permutations + 1),
        observed,
        _higher(first, second),
        len(first),
        len(second),
        permutations,
    )


def _tail_weights(place: npt.NDArray[np.intp]) -> tuple[Floats, npt.NDArray[np.intp]]:
    """share / (H (1 - H)) at each distinct value but the largest, and the last index of its run."""
    counts = np.bincount(place)
    last = np.cumsum(counts) - 1
    total = len(place)
    below = (last[:-1] + 1) / total
    return counts[:-1] / total / (below * (1 - below)), last[:-1]


def _distance(evaluated: Floats, last: npt.NDArray[np.intp], weights: Floats) -> float:
    """The statistic, from the 0/1 marks of the evaluated in the order of their scores."""
    m = evaluated.sum()
    n = len(evaluated) - m
    of_evaluated = np.cumsum(evaluated)[last]
    of_calibration = last + 1 - of_evaluated
    return float(np.sum(weights * (of_evaluated / m - of_calibration / n) ** 2))


def _higher(first: Floats, second: Floats) -> float:
    ordered = np.sort(first)
    below = np.searchsorted(ordered, second, side="left")
    not_above = np.searchsorted(ordered, second, side="right")
    return float((below + not_above).mean() / (2 * len(first)))


def _check(first: Floats, second: Floats, permutations: int) -> None:
    if first.ndim != 1 or second.ndim != 1 or not len(first) or not len(second):
        raise ValueError(
            f"scores of shapes {first.shape} and {second.shape}; the true-class scores of at least "
            "one calibration and one evaluated node are needed"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("scores that are not finite; find the nodes whose score is NaN or inf")
    if permutations < 1:
        raise ValueError(f"{permutations} permutations; at least 1 is needed, 999 is usual")
