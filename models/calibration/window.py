"""Which nodes of known class calibrate the next run: all that joined, or the newest of them.

Newest is by the run that evaluated a node, never by when its class was noticed: an investigator who
looks at odd cases first would otherwise choose the calibration set. Nodes of the training split
were there before the first run. Where the border falls inside a run, a number that belongs to the
node (`models.hashing`) decides, independently of scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MIN_PER_PROMISED_CLASS = 60


def newest(evaluated_in: Ints, draw: Floats, size: int) -> Mask:
    """Return which `size` nodes were evaluated last; all where there are no more.

    Args:
        evaluated_in: number of the run that evaluated each node, 0 for the training split [n].
        draw: one uniform number per node [n].
        size: how many nodes count.

    >>> newest(np.array([0, 1, 1, 2]), np.array([0.5, 0.2, 0.9, 0.1]), size=2).tolist()
    [False, True, False, True]
    """
    if size < 1:
        raise ValueError(f"a window of {size} nodes; needed: at least 1")
    if len(evaluated_in) <= size:
        return np.ones(len(evaluated_in), np.bool_)
    oldest = np.partition(evaluated_in, -size)[-size]  # the run that the border falls into
    chosen = evaluated_in > oldest
    there = np.flatnonzero(evaluated_in == oldest)
    lowest = np.argsort(draw[there], kind="stable")[: size - int(chosen.sum())]
    chosen[there[lowest]] = True
    return np.asarray(chosen)


def newest_with_classes(
    evaluated_in: Ints,
    draw: Floats,
    size: int,
    classes: Ints,
    promised: Ints,
    least: int = MIN_PER_PROMISED_CLASS,
) -> Mask:
    """Return the newest `size` nodes, and of each promised class at least its newest `least`.

    A plain window of 500 holds 15 nodes of a class of 3 %: too few for a promise of its own.

    Args:
        evaluated_in: as in `newest`.
        draw: as in `newest`.
        size: as in `newest`.
        classes: the nodes' classes [n].
        promised: classes that have a promise of their own.
        least: how many nodes each of them gets, where there are so many.

    >>> runs, draw = np.array([1, 2, 3, 4]), np.zeros(4)
    >>> newest_with_classes(runs, draw, 2, np.array([1, 0, 0, 0]), np.array([1])).tolist()
    [True, False, True, True]
    """
    chosen = newest(evaluated_in, draw, size)
    for class_ in promised:
        of_class = np.flatnonzero(classes == class_)
        chosen[of_class[newest(evaluated_in[of_class], draw[of_class], least)]] = True
    return chosen
