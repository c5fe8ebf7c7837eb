"""Library only, until jobs use it.

When the nodes of a run join calibration: together, once their known share stops growing.

Classes rarely become known in a random order. If one class is known early, nodes that join one by
one fill the window with it, and the promise follows them instead of everybody. A run's nodes are
one cohort: they wait until a run of that age usually has its classes, and then join together, as
many as are known. That age is measured on the classes that became known so far. (That nothing was
new since the run before says too little: between the early class and the others lies a quiet time.)
Classes of the same run that come later still join as they come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

KNOWN_BY_THEN = 0.95
"""Share of all classes known so far that had come by the age at which a run counts as settled."""


FIRST_RUNS = 5
"""Nobody joins before a run is this old: earlier ones can't tell an early class from all classes."""


def settled_age(lags: Ints, share: float = KNOWN_BY_THEN) -> int:
    """Return after how many runs a run's classes have usually come; 0 before any is known.

    Args:
        lags: for each known class, how many runs after its node's own it was noticed [labels].
        share: of the labels that had come by then.

    >>> settled_age(np.array([1, 1, 2, 2, 2, 5, 2, 2, 2, 2]), share=0.9)
    2
    """
    if len(lags) == 0:
        return 0
    return int(np.quantile(lags, share, method="inverted_cdf"))


def settled(age: Ints, known: Ints, lags: Ints) -> Mask:
    """Return which runs' nodes may join: some class is known, and the run is old enough.

    Args:
        age: runs that have passed since each run [runs].
        known: nodes of each run whose class is known [runs].
        lags: as in `settled_age`, of all runs [labels].

    >>> settled(np.array([5, 2, 1]), np.array([9, 9, 1]), np.array([1] + [2] * 18)).tolist()
    [True, True, False]
    """
    if len(age) == 0 or age.max() < FIRST_RUNS:
        return np.zeros(len(age), np.bool_)
    return np.asarray((known > 0) & (age >= settled_age(lags)))
