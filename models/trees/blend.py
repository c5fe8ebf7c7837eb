"""The mean of the probabilities of a network and of trees, as logits that have them.

The two err in different places: on real graphs in time order their mean was best or equal to the
better one on most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.scores.base import softmax64
from ringfence.models.trees.ensemble import FRONT

__all__ = ["blend_logits", "without_trees"]


def blend_logits(network: NDArray[Any], trees: NDArray[Any]) -> NDArray[np.float32]:
    """Return logits [n, classes] whose softmax is the mean of both softmaxes.

    >>> sure, unsure = np.array([[40.0, 0.0]]), np.array([[0.0, 0.0]])
    >>> softmax64(blend_logits(sure, unsure)).round(3).tolist()
    [[0.75, 0.25]]
    """
    chances = (softmax64(network) + softmax64(trees)) / 2
    return np.log(np.maximum(chances, np.finfo(np.float32).tiny)).astype(np.float32)


def without_trees(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a blend that belong to its network."""
    return {name: array for name, array in weights.items() if not name.startswith(FRONT)}
