"""p-values and sets of all due nodes in one read of their scores, in strata of any kind.

Sorted calibration scores of all strata are concatenated. Due nodes that are judged by the same
strata form a cell; a table has the stratum by cell and class. Strata whose due nodes have weights
of their own are judged one after the other (`strata.stratified_p_values`), and so are small inputs,
which cost less than loading the compiler. The bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.arrays import Array, Floats, as_floats, as_scores, as_test_weights, as_weights
from ringfence.models.conformal import calibration_ranks
from ringfence.models.conformal.sets import sets_at_levels
from ringfence.models.conformal.strata import Stratum, stratified_p_values
from ringfence.models.conformal.weighted import p_table
from ringfence.models.row_shares import share_rows

__all__ = ["compute_p_values"]

Bools = NDArray[np.bool_]
MAX_STORED_SCORES = 2**32 - 1  # their places are 32 bits wide


@dataclass(frozen=True, slots=True)
class CalibrationIndex:
    """Which calibration scores each p-value is computed from, for `kernels.batched_p_values`."""

    cells: Array
    judges: Array
    ordered: Floats
    starts: Array
    table: Floats
    places: Array
    lines: Floats


def compute_p_values(
    known: Floats,
    scores: Floats,
    strata: Sequence[Stratum],
    levels: Floats,
    workers: int = 1,
) -> tuple[Floats, Bools]:
    """Return p-values [m, classes] and, by alpha, sets [alphas, m, classes] of the due nodes.

    Args:
        known: scores of the true classes of the calibration nodes [n].
        scores: scores of the due nodes [m, classes].
        strata: which calibration nodes each due node is compared with; a class that no stratum
            judges can't be excluded and has p = 1.
        levels: what p-values must be above, by alpha and class [alphas, classes].
        workers: threads that share the due nodes.

    >>> strata = [Stratum("", np.arange(4), np.arange(1))]
    >>> known = np.array([0.2, 0.4, 0.6, 0.8])
    >>> p, sets = compute_p_values(known, np.array([[0.1, 0.7]]), strata, np.full((1, 2), 0.2))
    >>> p.tolist(), sets.tolist()
    ([[0.2, 0.8]], [[[False, True]]])
    """
    stored = sum(len(stratum.calibration) for stratum in strata)
    own_weights = any(np.ndim(stratum.test_weight) > 0 for stratum in strata)
    small = scores.size <= calibration_ranks.MAX_SCORES_FOR_NUMPY
    if small or own_weights or stored > MAX_STORED_SCORES:
        p = stratified_p_values(known, scores, strata)
        return p, sets_at_levels(p, levels)
    from ringfence.models.conformal.kernels.batched_p_values import compute_p_value_rows

    scores = as_floats(scores, "scores", (2,))
    who = _judges(known, strata, *scores.shape)
    p, sets = np.empty(scores.shape), np.empty((len(levels), *scores.shape), np.bool_)
    tables = who.cells, who.judges, who.ordered, who.starts, who.table, who.places, who.lines
    limits = np.ascontiguousarray(levels, np.float64)

    def compute_part(start: int, stop: int) -> None:
        if compute_p_value_rows(start, stop, scores, *tables, limits, p, sets):
            as_scores(scores, "scores", (2,))  # says what is wrong with them

    share_rows(len(scores), workers, compute_part)
    return p, sets


def _judges(known: Floats, strata: Sequence[Stratum], due: int, classes: int) -> CalibrationIndex:
    """Concatenate the calibration scores of all strata."""
    checked = as_scores(known, "calibration scores", (1,))
    cells, judges = _cells(strata, due, classes)
    ordered, starts, tables, places, lines = [], [], [], [], []
    scores_before = buckets_before = entries_before = 0
    for stratum in strata:
        weights, test_weight = stratum.weights, float(as_test_weights(stratum.test_weight, (0,)))
        mine = checked[stratum.calibration]
        by_score, mass = calibration_ranks.order(
            mine, None if weights is None else as_weights(weights, len(mine))
        )
        lookup = calibration_ranks.make_lookup(by_score) or calibration_ranks.one_bucket(by_score)
        table = (
            np.empty(0) if weights is None and test_weight == 1.0 else p_table(mass, test_weight)
        )
        places.append((scores_before, buckets_before, entries_before if len(table) else -1))
        lines.append((lookup.low, lookup.scale, len(lookup.starts) - 2.0, len(mine) + 1.0))
        ordered.append(lookup.ordered)
        starts.append(lookup.starts + np.uint32(scores_before))
        tables.append(table)
        scores_before += len(lookup.ordered)
        buckets_before += len(lookup.starts)
        entries_before += len(table)
    return CalibrationIndex(
        cells,
        judges,
        np.concatenate([*ordered, np.empty(0)]),
        np.concatenate([*starts, np.empty(0, np.uint32)]),
        np.concatenate([*tables, np.empty(0)]),
        np.array(places, np.int64).reshape(-1, 3),
        np.array(lines, np.float64).reshape(-1, 4),
    )


def _cells(strata: Sequence[Stratum], due: int, classes: int) -> tuple[Array, Array]:
    """The cell of each due node, and by cell and class the place of the stratum that judges.

    If two strata judge the same class of the same node, the later one counts.
    """
    from ringfence.models.conformal.kernels.batched_p_values import NOBODY

    cells, judges = np.zeros(due, np.int32), [np.full(classes, NOBODY, np.int32)]
    before: Array | None = None  # due nodes that are in cells of their own already
    for place, stratum in enumerate(strata):
        if before is None or stratum.due is not before:
            inside = np.bincount(cells[stratum.due], minlength=len(judges))
            fresh = np.arange(len(judges), dtype=np.int32)
            for old in np.flatnonzero(inside).tolist():
                fresh[old] = len(judges)
                judges.append(judges[old].copy())
            cells[stratum.due] = fresh[cells[stratum.due]]
            of_stratum, before = fresh[np.flatnonzero(inside)], stratum.due
        for cell in of_stratum.tolist():
            judges[cell][slice(None) if stratum.class_index is None else stratum.class_index] = (
                place
            )
    return cells, np.stack(judges)
