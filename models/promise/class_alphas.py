"""Classes with a promise of their own: the share that may be missed, and what that takes.

A promise of a class rests on the calibration nodes of that class alone: with n of them a finite
threshold needs n >= 1 / alpha - 1, and a stable one several times that. A
rare class gives more of its labelled nodes to calibration than the configured share, and at most
`MAX_SHARE`, since the network has to learn it too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.guarantee.law import smallest_n

GOOD_MULTIPLE = 4
"""Calibration nodes beyond the fewest, as a multiple: miss rates then scatter by about a half."""

MAX_SHARE = 0.6


class UnknownClass(ValueError):
    """A share was given for a class that the model does not have."""


def class_alphas(
    classes: Sequence[str], alpha: float, own_alphas: Mapping[str, float]
) -> NDArray[np.float64]:
    """Return one share per class: that in `own_alphas` if given, else `alpha` [classes].

    >>> class_alphas(("mule", "normal"), 0.1, {"mule": 0.05}).tolist()
    [0.05, 0.1]
    """
    if missing := sorted(set(own_alphas) - set(classes)):
        raise UnknownClass(
            f"no class is called {', '.join(map(repr, missing))}; the classes are "
            f"{', '.join(map(repr, classes))}"
        )
    return np.array([own_alphas.get(name, alpha) for name in classes], np.float64)


def classes_in_every_set(
    counts: NDArray[np.int64], alphas: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Library only: return which classes have too few calibration nodes to be left out of any set.

    Args:
        counts: calibration nodes of each class [classes].
        alphas: share of each class that may be missed [classes].

    >>> classes_in_every_set(np.array([8, 9]), np.array([0.1, 0.1])).tolist()
    [True, False]
    """
    needed = np.array([smallest_n(float(alpha)) for alpha in alphas], np.int64)
    return np.asarray(counts < needed)


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
