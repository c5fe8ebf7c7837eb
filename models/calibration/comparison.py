"""Test whether due nodes look like calibration nodes, before any of their classes is known.

For each quantity (degree, top probability, entropy, columns) the statistic is that of Kolmogorov
and Smirnov, the largest distance between two distribution functions. Its p-value comes from
permutations of which nodes are due, within the strata that the rule in use calibrates by: each
stratum of calibration nodes is weighted by the share of due nodes in it, so that a difference which
the rule accounts for is not reported. Under exchangeability within strata the p-value is valid for
any number of nodes and with ties.

One permutation serves all quantities, and each quantity is compared with the largest distance that
any of them has in it (Westfall and Young 1993): the chance of a single false report among all of
them is the level, however many there are and however they are correlated.

Permutations stop early (Besag and Clifford 1991): after `h` of them were at least as far apart as
the most distant quantity its p-value is h / drawn, otherwise (1 + exceeding) / (1 + all).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """One quantity: medians on both sides, distance of the distributions, p-value of all tests.

    p_value is that of the most distant of all quantities. A column whose values are no plain
    numbers has no medians (NaN).
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


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column at the sampled calibration nodes and then due nodes; `plain`: numbers as they are.

    A value of another kind is represented by a number that depends on the value alone.
    """

    name: str
    values: Floats
    plain: bool = True


Columns = Callable[[Ints, Ints], Sequence[ComparedColumn]]
"""Gives columns at places among the calibration nodes and at places among the due nodes."""


def compare_nodes(
    calibration: Mapping[str, Floats],
    due: Mapping[str, Floats],
    calibration_strata: Ints,
    due_strata: Ints,
    seed: int,
    columns: Columns | None = None,
) -> list[ColumnDifference]:
    """Compare due with calibration nodes in every quantity.

    Args:
        calibration: quantity -> its values at the calibration nodes [n].
        due: the same quantities at the due nodes [m].
        calibration_strata: stratum by which the rule calibrates, zeros where it has none [n].
        due_strata: the same of the due nodes [m].
        seed: of the permutations, and of the sample that is drawn when there are very many nodes.
        columns: more quantities, read at the nodes of the sample only.

    Returns:
        one difference per quantity; none where a side has no node in a common stratum.

    >>> rng = np.random.default_rng(0)
    >>> sides = {"degree": rng.poisson(5.0, 300)}, {"degree": rng.poisson(9.0, 300)}
    >>> zeros = np.zeros(300, np.int64)
    >>> [column.differs for column in compare_nodes(*sides, zeros, zeros, seed=1)]
    [True]
    """
    rng = np.random.default_rng(seed)
    common = np.intersect1d(calibration_strata, due_strata)
    left = _sample(rng, np.flatnonzero(np.isin(calibration_strata, common)))
    right = _sample(rng, np.flatnonzero(np.isin(due_strata, common)))
    if not len(left) or not len(right):
        return []
    strata = np.concatenate([calibration_strata[left], due_strata[right]])
    whole = {
        name: np.concatenate([values[left], due[name][right]]).astype(np.float64)
        for name, values in calibration.items()
    }
    plain = dict.fromkeys(whole, True)
    for column in columns(left, right) if columns else ():
        whole[column.name], plain[column.name] = column.values, column.plain
    n, is_due = len(left), np.arange(len(strata)) >= len(left)
    tested = _permutation_test(np.stack(list(whole.values())), is_due, strata, rng)
    return [
        ColumnDifference(name, *_medians(values, n, plain[name]), distance, p)
        for (name, values), (distance, p) in zip(whole.items(), tested, strict=True)
    ]


def _medians(values: Floats, n: int, plain: bool) -> tuple[float, float]:
    if not plain:
        return np.nan, np.nan
    return float(np.median(values[:n])), float(np.median(values[n:]))


def compared_strata(
    strata: Sequence[Stratum], calibration_degrees: Ints, due_degrees: Ints
) -> tuple[Ints, Ints]:
    """Return within which strata nodes are compared: [n] and [m].

    They are the rule's own strata. If it weights calibration nodes by degree, nodes of similar
    degree are compared, since weights depend on nothing else.

    >>> low, high = np.array([0]), np.array([1])
    >>> bands = [Stratum("0-1", low, high), Stratum("2+", high, low)]
    >>> compared_strata(bands, np.array([1, 5]), np.array([7, 0]))
    (array([0, 1]), array([1, 0]))
    """
    if any(stratum.weights is not None for stratum in strata):
        return degree_strata(calibration_degrees), degree_strata(due_degrees)
    ours = np.full(len(calibration_degrees), -1, np.int64)
    theirs = np.full(len(due_degrees), -1, np.int64)
    for number, stratum in enumerate(strata):
        ours[stratum.calibration[ours[stratum.calibration] < 0]] = number
        theirs[stratum.due[theirs[stratum.due] < 0]] = number
    return ours, np.where(theirs < 0, len(strata), theirs)


def describe_differences(differences: Sequence[ColumnDifference]) -> str:
    """Return one sentence about what differs; empty where nothing does.

    >>> describe_differences([ColumnDifference("degree", 4.0, 9.0, 0.4, 0.002)])
    'the nodes scored in this run differ from those that the promise was measured on: degree \
(median 9, calibration nodes 4); it is not backed for them until such nodes are labelled'
    """
    words = [
        column.name
        if np.isnan(column.due)
        else f"{column.name} (median {column.due:.3g}, calibration nodes {column.calibration:.3g})"
        for column in differences
        if column.differs
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
) -> list[tuple[float, float]]:
    """Distance and p-value of each quantity (a row of `values`) [quantities]."""
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    ends = np.ones(values.shape, np.bool_)  # the last of each tie
    ends[:, :-1] = ranked[:, 1:] != ranked[:, :-1]
    _, of_node = np.unique(strata, return_inverse=True)
    due_in = np.bincount(of_node, weights=is_due)
    others_in = np.bincount(of_node) - due_in
    usable = others_in > 0
    # a calibration node counts as many due nodes as its stratum has per calibration node
    share = np.where(usable, due_in / np.maximum(others_in, 1), 0.0)[of_node]
    total = due_in[usable].sum()
    groups = [np.flatnonzero(of_node == stratum) for stratum in range(len(due_in))]

    def distances(due: NDArray[np.bool_]) -> Floats:
        gap = np.cumsum(np.where(due, 1.0, -share)[order], axis=1)
        return np.asarray(np.where(ends, np.abs(gap), 0.0).max(axis=1) / total)

    observed = distances(is_due)
    exceeding, drawn = np.zeros(len(values), np.int64), 0
    while drawn < PERMUTATIONS and exceeding.min() < EXCEEDING_ENOUGH:
        shuffled = is_due.copy()
        for rows in groups:
            shuffled[rows] = shuffled[rows[rng.permutation(len(rows))]]
        drawn += 1
        exceeding += distances(shuffled).max() >= observed - 1e-12
    p = exceeding / drawn if exceeding.min() >= EXCEEDING_ENOUGH else (1 + exceeding) / (1 + drawn)
    return list(zip(observed.tolist(), p.tolist(), strict=True))
