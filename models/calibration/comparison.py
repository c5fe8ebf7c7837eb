"""Do the due nodes look like the calibration nodes? Asked before any of their classes is known.

For each quantity (degree, top probability, entropy, a column) the statistic is that of Kolmogorov
and Smirnov, the largest distance between two distribution functions. Its p-value comes from
permutations of who is due, within the strata that the rule in use calibrates by: calibration nodes
stand in each stratum with the share that due nodes have there, so that a difference which the rule
accounts for is not reported. Under exchangeability within strata the p-value is valid for any
number of nodes and with ties.

Permutations stop early (Besag and Clifford 1991): after `h` of them were at least as far apart the
p-value is h / drawn, otherwise (1 + exceeding) / (1 + all).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import Stratum
from ringfence.models.exchangeability.smoothed_pvalues import degree_strata

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LEVEL = 0.01
"""Chance per run, over all quantities together, of reporting a difference that is not there."""

PERMUTATIONS = 999
EXCEEDING_ENOUGH = 10
MAX_NODES_PER_SIDE = 1_000
_ROUND = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity: medians on both sides, distance of the distributions, p-value of all tests.

    p_value is already multiplied by the number of quantities (Bonferroni).
    """

    name: str
    calibration: float
    due: float
    distance: float
    p_value: float

    @property
    def differs(self) -> bool:
        """Whether the difference is reported."""
        return self.p_value < LEVEL


def compare_nodes(
    calibration: Mapping[str, Floats],
    due: Mapping[str, Floats],
    calibration_strata: Ints,
    due_strata: Ints,
    seed: int,
) -> list[Difference]:
    """Compare due with calibration nodes in every quantity.

    Args:
        calibration: quantity -> its values at the calibration nodes [n].
        due: the same quantities at the due nodes [m].
        calibration_strata: stratum by which the rule calibrates, zeros where it has none [n].
        due_strata: the same of the due nodes [m].
        seed: of the permutations and of the sample that stands for very many nodes.

    Returns:
        one difference per quantity; none where a side has no node in a common stratum.

    >>> rng = np.random.default_rng(0)
    >>> sides = {"degree": rng.poisson(5.0, 300)}, {"degree": rng.poisson(9.0, 300)}
    >>> zeros = np.zeros(300, np.int64)
    >>> [found.differs for found in compare_nodes(*sides, zeros, zeros, seed=1)]
    [True]
    """
    rng = np.random.default_rng(seed)
    common = np.intersect1d(calibration_strata, due_strata)
    left = _sample(rng, np.flatnonzero(np.isin(calibration_strata, common)))
    right = _sample(rng, np.flatnonzero(np.isin(due_strata, common)))
    if not len(left) or not len(right):
        return []
    strata = np.concatenate([calibration_strata[left], due_strata[right]])
    is_due = np.arange(len(strata)) >= len(left)
    found = []
    for name, values in calibration.items():
        ours, theirs = values[left].astype(np.float64), due[name][right].astype(np.float64)
        distance, p = _permutation_test(np.concatenate([ours, theirs]), is_due, strata, rng)
        adjusted = min(1.0, p * len(calibration))
        found.append(
            Difference(name, float(np.median(ours)), float(np.median(theirs)), distance, adjusted)
        )
    return found


def compared_strata(
    strata: Sequence[Stratum], calibration_degrees: Ints, due_degrees: Ints
) -> tuple[Ints, Ints]:
    """Return within which strata nodes are compared: [n] and [m].

    Those that the rule judges by. Where it weighs calibration nodes by their degree, nodes of like
    degree are compared, since weights depend on nothing else.

    >>> low, high = np.array([0]), np.array([1])
    >>> bands = [Stratum("0-1", low, high), Stratum("2+", high, low)]
    >>> compared_strata(bands, np.array([1, 5]), np.array([7, 0]))
    (array([0, 1]), array([1, 0]))
    """
    if any(one.weights is not None for one in strata):
        return degree_strata(calibration_degrees), degree_strata(due_degrees)
    ours = np.full(len(calibration_degrees), -1, np.int64)
    theirs = np.full(len(due_degrees), -1, np.int64)
    for number, one in enumerate(strata):
        ours[one.calibration[ours[one.calibration] < 0]] = number
        theirs[one.due[theirs[one.due] < 0]] = number
    return ours, np.where(theirs < 0, len(strata), theirs)


def describe_differences(found: Sequence[Difference]) -> str:
    """Return one sentence about what differs; empty where nothing does.

    >>> describe_differences([Difference("degree", 4.0, 9.0, 0.4, 0.002)])
    'the nodes scored in this run differ from those that the promise was measured on: degree \
(median 9, calibration nodes 4); it is not backed for them until such nodes are labelled'
    """
    words = [
        f"{one.name} (median {one.due:.3g}, calibration nodes {one.calibration:.3g})"
        for one in found
        if one.differs
    ]
    if not words:
        return ""
    return (
        "the nodes scored in this run differ from those that the promise was measured on: "
        f"{', '.join(words)}; it is not backed for them until such nodes are labelled"
    )


def false_alarms_per_year(runs_per_year: float) -> float:
    """Return how many runs a year report a difference by chance when there is none.

    >>> false_alarms_per_year(365)
    3.65
    """
    return LEVEL * runs_per_year


def _sample(rng: np.random.Generator, rows: Ints) -> Ints:
    if len(rows) <= MAX_NODES_PER_SIDE:
        return rows
    return np.sort(rng.choice(rows, MAX_NODES_PER_SIDE, replace=False))


def _permutation_test(
    values: Floats, is_due: NDArray[np.bool_], strata: Ints, rng: np.random.Generator
) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))  # last of each tie
    _, of_node = np.unique(strata, return_inverse=True)
    due_in = np.bincount(of_node, weights=is_due)
    others_in = np.bincount(of_node) - due_in
    usable = others_in > 0
    # a calibration node counts as many due nodes as its stratum has per calibration node
    share = np.where(usable, due_in / np.maximum(others_in, 1), 0.0)[of_node[order]]
    total = due_in[usable].sum()
    groups = [np.flatnonzero(of_node[order] == s) for s in range(len(due_in))]

    def distance(due_sorted: NDArray[np.bool_]) -> float:
        gap = np.cumsum(np.where(due_sorted, 1.0, -share))
        return float(np.abs(gap[ends]).max() / total)

    observed = distance(is_due[order])
    exceeding = drawn = 0
    while drawn < PERMUTATIONS:
        for _ in range(min(_ROUND, PERMUTATIONS - drawn)):
            shuffled = is_due[order].copy()
            for rows in groups:
                shuffled[rows] = shuffled[rows[rng.permutation(len(rows))]]
            drawn += 1
            exceeding += distance(shuffled) >= observed - 1e-12
            if exceeding == EXCEEDING_ENOUGH:
                return observed, exceeding / drawn
    return observed, (1 + exceeding) / (1 + drawn)
