"""TPS, threshold prediction sets: the score is the class's probability (Sadinle et al. 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ringfence.models.arrays import as_classes, as_probabilities, check_probabilities, like

__all__ = ["tps", "tps_true", "tps_true_without_u", "tps_without_u"]


def tps(probabilities: Any) -> torch.Tensor:
    """Return threshold scores s = pi_y, float64 [n, classes].

    >>> tps([[0.7, 0.3]])
    tensor([[0.7000, 0.3000]], dtype=torch.float64)
    """
    given = as_probabilities(probabilities)
    check_probabilities(given)
    return like(probabilities, given.astype(np.float64))


def tps_true(probabilities: Any, classes: Any) -> torch.Tensor:
    """Return the TPS score of one class per node: ``tps(probabilities)[i, classes[i]]``, [n].

    >>> tps_true([[0.7, 0.3]], [1])
    tensor([0.3000], dtype=torch.float64)
    """
    given = as_probabilities(probabilities)
    check_probabilities(given)
    chosen = as_classes(classes, len(given), given.shape[1])
    return like(
        probabilities, np.take_along_axis(given, chosen[:, None], axis=1)[:, 0].astype(np.float64)
    )


def tps_without_u(probabilities: Any, u: Any) -> torch.Tensor:
    """Return ``tps(probabilities)``: the registry passes u to every score, and TPS has no use."""
    return tps(probabilities)


def tps_true_without_u(probabilities: Any, u: Any, classes: Any) -> torch.Tensor:
    """Return ``tps_true(probabilities, classes)``; u is taken and unused."""
    return tps_true(probabilities, classes)
