"""Degree bands: calibration among nodes of like degree, right whether nodes or edges arrive.

Given the graph as it is now, a node's odds of having been there at training, or of arriving in some
window, depend under edge exchangeability on its degree alone, and under node exchangeability on
nothing. So within a band of degrees calibration and due nodes have (nearly) equal odds in both
worlds, and it need not be known which one holds. docs/mathematics.md says what is proved of this.

Cuts come from the degrees of all nodes, never from which nodes calibrate: going up through the
degrees, a band is closed once it is expected to hold 3 / alpha calibration nodes and as many are
expected beyond it. A band that really holds fewer than 1.5 / alpha joins its smaller neighbour; the
node that is judged counts as one of them, which makes the choice of bands symmetric in it and the
calibration nodes, and the promise exact under node exchangeability.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import ALL_NODES, Stratum

Ints = NDArray[np.int64]

EXPECTED_NODES = 3.0  # over alpha: what a band is expected to hold; 30 at alpha .1
EXPECTED_IN_LIVING_SETS = 6.0  # the same where known nodes join: fewer full sets when levels sink
FEWEST_NODES = 1.5  # over alpha: a band that holds fewer joins another
FEWEST_FOR_BANDS = 6.0  # over alpha: with fewer calibration nodes there are no bands

MIN_NODES_OF_PART = 60  # a class or group with fewer has no bands of its own, at whatever alpha


def has_bands(calibration: int, alpha: float) -> bool:
    """Whether there are enough calibration nodes for bands at the smallest alpha.

    >>> has_bands(59, 0.1), has_bands(60, 0.1)
    (False, True)
    """
    return calibration >= math.ceil(FEWEST_FOR_BANDS / alpha - 1e-9)


def cut_degrees(
    counts: Ints, calibration: int, alpha: float, expected: float = EXPECTED_NODES
) -> Ints:
    """Return the lowest degree of each band, ascending; the first is 0.

    Args:
        counts: nodes of the graph with degree 0, 1, 2, … [largest degree + 1].
        calibration: the number of calibration nodes.
        alpha: the smallest share that may be missed.
        expected: over alpha, how many calibration nodes a band is expected to hold; with too few
            for two such bands, `EXPECTED_NODES`.

    >>> cut_degrees(np.array([10, 400, 300, 200, 90]), calibration=100, alpha=0.1)
    array([0, 2])
    >>> cut_degrees(np.array([10, 400, 300, 200, 90]), calibration=50, alpha=0.1)
    array([0])
    """
    total = int(counts.sum())
    lows = [0]
    if total == 0 or not has_bands(calibration, alpha):
        return np.array(lows, np.int64)
    if calibration < 2 * expected / alpha - 1e-9:
        expected = EXPECTED_NODES
    needed = math.ceil(expected / alpha - 1e-9) * total  # in units of 1 / total nodes
    inside, left = 0, total * calibration
    for degree in np.flatnonzero(counts).tolist():
        nodes = int(counts[degree]) * calibration
        inside, left = inside + nodes, left - nodes
        if inside >= needed and left >= needed:
            lows.append(degree + 1)
            inside = 0
    return np.array(lows, np.int64)


def cut_degrees_of_part(
    counts: Ints, calibration: int, alpha: float, expected: float = EXPECTED_NODES
) -> Ints:
    """Return the lowest degree of each band inside a class or a group; [0] where it is too small.

    Args:
        counts: nodes of the whole graph by degree, as in `cut_degrees`.
        calibration: how many calibration nodes the class or group has.
        alpha: the smallest share of it that may be missed.
        expected: over alpha, as in `cut_degrees`.

    >>> counts = np.array([10, 400, 300, 200, 90])
    >>> cut_degrees_of_part(counts, 59, 0.2), cut_degrees_of_part(counts, 60, 0.2)
    (array([0]), array([0, 2, 3]))
    """
    if calibration < MIN_NODES_OF_PART:
        return np.zeros(1, np.int64)
    return cut_degrees(counts, calibration, alpha, expected)


def band_numbers(lows: Ints, degrees: Ints) -> Ints:
    """Return the band of each degree, 0 to len(lows) - 1.

    >>> band_numbers(np.array([0, 2, 5]), np.array([0, 1, 2, 9])).tolist()
    [0, 0, 1, 2]
    """
    different = int(degrees.max(initial=-1)) + 1
    if different >= len(degrees):
        return np.asarray(np.searchsorted(lows, degrees, side="right") - 1, np.int64)
    # fewer degrees than nodes: each of them is looked up once
    of_degree = np.searchsorted(lows, np.arange(different), side="right") - 1
    return np.asarray(of_degree[degrees], np.int64)


def merge_bands(counts: Ints, least: int) -> Ints:
    """Return the first band of each band's union: bands with fewer than `least` nodes join.

    The smallest union joins its smaller neighbour until none holds fewer than `least` or one is
    left; of equals the lower one.

    Args:
        counts: nodes in each band [bands].
        least: how many a union must hold.

    >>> merge_bands(np.array([20, 5, 30, 40]), least=15).tolist()
    [0, 0, 2, 3]
    """
    starts = list(range(len(counts)))
    sizes = [int(count) for count in counts]
    while len(sizes) > 1 and min(sizes) < least:
        small = sizes.index(min(sizes))
        left = sizes[small - 1] if small > 0 else math.inf
        right = sizes[small + 1] if small + 1 < len(sizes) else math.inf
        first = small - 1 if left <= right else small
        sizes[first] += sizes.pop(first + 1)
        starts.pop(first + 1)
    union = np.searchsorted(np.array(starts), np.arange(len(counts)), side="right") - 1
    return np.array(starts, np.int64)[union]


def fewest_nodes(alpha: float) -> int:
    """Return how many calibration nodes, with the node that is judged, a band must hold.

    >>> fewest_nodes(0.1), fewest_nodes(0.05)
    (15, 30)
    """
    return math.ceil(FEWEST_NODES / alpha - 1e-9)


def band_strata(
    lows: Ints, calibration_degrees: Ints, due_degrees: Ints, alpha: float
) -> list[Stratum]:
    """Return the strata of degree bands, those of higher degrees later.

    The union of bands that a node is compared with is made with that node counted among the
    calibration nodes. So two due nodes can have unions that overlap; it is rare, and both are
    right.

    Args:
        lows: `cut_degrees` of the graph as it is now.
        calibration_degrees: [n]. due_degrees: [m].
        alpha: the smallest share that may be missed.

    >>> near = np.repeat([1, 2, 8], [30, 30, 4])
    >>> found = band_strata(np.array([0, 2, 6]), near, np.array([1, 9]), 0.1)
    >>> [(one.band, len(one.calibration), one.due.tolist()) for one in found]
    [('0-1', 30, [0]), ('2+', 34, [1])]
    """
    known, due = band_numbers(lows, calibration_degrees), band_numbers(lows, due_degrees)
    counts = np.bincount(known, minlength=len(lows))
    by_span: dict[tuple[int, int], list[Ints]] = {}
    # bands are few: a stable sort of small numbers puts the places of each side by side
    sizes = np.bincount(due, minlength=len(lows))
    order = np.argsort(due.astype(np.min_scalar_type(len(lows))), kind="stable")
    places_of = np.split(order, np.cumsum(sizes)[:-1])
    for band in np.flatnonzero(sizes).tolist():
        with_it = counts.copy()
        with_it[band] += 1
        unions = merge_bands(with_it, fewest_nodes(alpha))
        inside = np.flatnonzero(unions == unions[band])
        span = int(inside[0]), int(inside[-1])
        by_span.setdefault(span, []).append(places_of[band])
    return [
        Stratum(
            band_name(lows, first, last),
            np.flatnonzero((known >= first) & (known <= last)),
            places[0] if len(places) == 1 else np.sort(np.concatenate(places)),
        )
        for (first, last), places in sorted(by_span.items())
    ]


def band_name(lows: Ints, first: int, last: int) -> str:
    """Return the degrees of the bands `first` to `last` as text; ALL_NODES for all of them.

    >>> lows = np.array([0, 2, 3])
    >>> band_name(lows, 0, 0), band_name(lows, 1, 1), band_name(lows, 1, 2)
    ('0-1', '2', '2+')
    """
    if first == 0 and last == len(lows) - 1:
        return ALL_NODES
    low = int(lows[first])
    if last == len(lows) - 1:
        return f"{low}+"
    high = int(lows[last + 1]) - 1
    return f"{low}-{high}" if high > low else f"{low}"
