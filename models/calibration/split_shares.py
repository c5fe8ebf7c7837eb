"""How many of a class's labelled nodes go to calibration, where the class has its own promise.

A promise of a class rests on the calibration nodes of that class alone: with n of them a finite
threshold needs n >= 1 / alpha - 1, and a threshold that is not mostly luck several times that. A
rare class gives more of its labelled nodes to calibration than the configured share, and at most
`MAX_SHARE`, since the network has to learn it too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ringfence.models.guarantee.law import smallest_n

GOOD_MULTIPLE = 4
"""Calibration nodes beyond the fewest, as a multiple: miss rates then scatter by about a half."""

MAX_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class ClassShare:
    """What a promised class has and needs; `missing` labelled nodes more make a promise possible.

    share: of the class's labelled nodes that goes to calibration.
    expected: calibration nodes that this share gives.
    needed: the fewest with which the class is not in every set.
    """

    share: float
    expected: float
    needed: int
    missing: int


def class_share(labelled: int, alpha: float, configured: float) -> ClassShare:
    """Return the share of a class's labelled nodes that calibration should get.

    Args:
        labelled: labelled nodes of the class.
        alpha: the share of the class that may be missed.
        configured: the share that calibration has of all nodes.

    >>> class_share(1000, 0.1, 0.2).share
    0.2
    >>> class_share(100, 0.1, 0.2).share, class_share(40, 0.1, 0.2).share
    (0.36, 0.6)
    >>> class_share(10, 0.1, 0.2)
    ClassShare(share=0.6, expected=6.0, needed=9, missing=5)
    """
    needed = smallest_n(alpha)
    wanted = round(GOOD_MULTIPLE * needed / labelled, 6) if labelled else 1.0
    share = max(configured, min(MAX_SHARE, wanted))
    missing = max(0, math.ceil(needed / share - 1e-9) - labelled)
    return ClassShare(share, share * labelled, needed, missing)
