"""Library only, until jobs use it.

When the nodes of a run join calibration: together, once their known share stopped growing.

Classes rarely become known in a random order. If one class is known early, nodes that join one by
one fill the window with it, and the promise follows them instead of everybody. A run's nodes are
one cohort: they wait until hardly any new class of that run is noticed, and then join together, as
many as are known. Classes of the same run that come later still join as they come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

STILL_GROWING = 0.02
"""Share of a run's nodes that, newly known since the run before, says that the rest may follow."""


def settled(
    evaluated: Ints, known: Ints, known_before: Ints, growth: float = STILL_GROWING
) -> Mask:
    """Return which runs' known shares have stopped growing.

    A run settles once some of its classes are known and at most the share `growth` of its nodes
    became known since the run before this one, or once all of them are known.

    Args:
        evaluated: nodes that each run evaluated [runs].
        known: those whose class is known now [runs].
        known_before: those whose class was known when the run before this one began [runs].
        growth: the share that still counts as no growth.

    >>> settled(np.array([70, 70, 70]), np.array([49, 49, 0]), np.array([49, 10, 0])).tolist()
    [True, False, False]
    """
    if ((known > evaluated) | (known_before > known)).any():
        raise ValueError("more nodes known than evaluated, or fewer known than before")
    still = known - known_before > growth * evaluated
    return np.asarray((known > 0) & (~still | (known == evaluated)))
