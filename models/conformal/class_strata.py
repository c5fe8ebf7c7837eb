"""Degree bands inside classes: which calibration nodes of class c its p-values are computed from.

A promise per class compares the score of class c with calibration nodes of class c. Where a class
has enough of them it has bands of degree of its own, cut as `bands` does from the degrees of all
nodes and from how many calibration nodes the class has; a smaller class is one stratum. If the
node's class is c, it and the calibration nodes of class c are exchangeable under node
exchangeability, whatever happens to other classes: the promise of each class is exact.

Classes have different cuts, while a due node's band has a single name. Degrees are therefore
divided into cells, so that within a cell every class uses the same calibration nodes. Several cells
can share the calibration nodes of a class; the law of coverage counts those once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.bands import (
    EXPECTED_NODES,
    band_name,
    band_numbers,
    cut_degrees_of_part,
    fewest_nodes,
    merge_bands,
)
from ringfence.models.conformal.strata import Stratum

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def class_band_strata(
    counts: Ints,
    calibration_degrees: Ints,
    due_degrees: Ints,
    classes: Ints,
    alphas: Floats,
    expected: float = EXPECTED_NODES,
) -> list[Stratum]:
    """Return one stratum per cell of degrees that holds due nodes, and class.

    Args:
        counts: nodes of the graph with degree 0, 1, 2, … [largest degree + 1].
        calibration_degrees: [n]. due_degrees: [m].
        classes: true classes of the calibration nodes [n].
        alphas: smallest share of each class that may be missed [classes].
        expected: over alpha, calibration nodes of a class that its bands are expected to hold.

    >>> near, of_class = np.repeat([1, 9, 5], [60, 60, 20]), np.repeat([0, 0, 1], [60, 60, 20])
    >>> counts = np.bincount(np.repeat([1, 5, 9], 500))
    >>> found = class_band_strata(counts, near, np.array([1, 8]), of_class, np.array([0.1, 0.1]))
    >>> [(one.band, one.class_index, len(one.calibration), one.due.tolist()) for one in found]
    [('0-1', 0, 60, [0]), ('0-1', 1, 20, [0]), ('6+', 0, 60, [1]), ('6+', 1, 20, [1])]
    """
    members = [np.flatnonzero(classes == y) for y in range(len(alphas))]
    cuts = [
        cut_degrees_of_part(counts, len(of_class), float(alpha), expected)
        for of_class, alpha in zip(members, alphas, strict=True)
    ]
    lows = np.unique(np.concatenate(cuts))  # within one of these every class has one band
    pieces = band_numbers(lows, due_degrees)
    ranges = {
        piece: tuple(
            _degree_range(cut, calibration_degrees[of_class], int(lows[piece]), float(a))
            for cut, of_class, a in zip(cuts, members, alphas, strict=True)
        )
        for piece in range(len(lows))
    }
    strata = []
    for first, last in _cells(ranges):
        due = np.flatnonzero((pieces >= first) & (pieces <= last))
        if not len(due):
            continue
        name = band_name(lows, first, last)
        for y, (low, high) in enumerate(ranges[first]):
            degree = calibration_degrees[members[y]]
            inside = members[y][(degree >= low) & (degree < high)]
            strata.append(Stratum(name, inside, due, y))
    return strata


def _degree_range(lows: Ints, degrees: Ints, degree: int, alpha: float) -> tuple[int, float]:
    """The degrees [low, high) of the calibration nodes that a node is compared with in a class.

    The node counts as one of them when small bands join others, as in `bands.band_strata`.
    """
    counts = np.bincount(band_numbers(lows, degrees), minlength=len(lows))
    band = int(band_numbers(lows, np.array([degree]))[0])
    counts[band] += 1
    unions = merge_bands(counts, fewest_nodes(alpha))
    inside = np.flatnonzero(unions == unions[band])
    last = int(inside[-1])
    return int(lows[inside[0]]), float(lows[last + 1]) if last + 1 < len(lows) else np.inf


def _cells(ranges: dict[int, tuple[tuple[int, float], ...]]) -> list[tuple[int, int]]:
    """Runs of neighbouring pieces with the same ranges in every class, as (first, last)."""
    cells: list[tuple[int, int]] = []
    for piece in sorted(ranges):
        if cells and ranges[cells[-1][0]] == ranges[piece]:
            cells[-1] = cells[-1][0], piece
        else:
            cells.append((piece, piece))
    return cells
