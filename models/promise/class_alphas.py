"""The share of each class that may be missed, in the order of the network's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.models.guarantee.law import smallest_n


class UnknownClass(ValueError):
    """A share was given for a class that the model does not have."""


def class_alphas(
    classes: Sequence[str], alpha: float, own: Mapping[str, float]
) -> NDArray[np.float64]:
    """Return one share per class: its own where one is given, else `alpha` [classes].

    >>> class_alphas(("mule", "normal"), 0.1, {"mule": 0.05}).tolist()
    [0.05, 0.1]
    """
    if missing := sorted(set(own) - set(classes)):
        raise UnknownClass(
            f"no class is called {', '.join(map(repr, missing))}; the classes are "
            f"{', '.join(map(repr, classes))}"
        )
    return np.array([own.get(name, alpha) for name in classes], np.float64)


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
