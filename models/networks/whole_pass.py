"""A whole forward pass of any module: users' own ones, and networks without inference layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.models.networks.factory import build
from ringfence.models.networks.threads import threads_for

__all__ = ["run_module"]

Float32s = NDArray[np.float32]
USUAL_WIDTH = 64


def run_module(
    name: str,
    weights: Mapping[str, NDArray[Any]],
    classes: int,
    options: Mapping[str, Any],
    features: Float32s,
    edges: NDArray[np.int64],
) -> Float32s:
    """Return the outputs of the network called ``name`` at every node [n, classes].

    Args:
        name: as in a model's manifest; ``package.module:Class`` for a user's own module.
        weights: of its ``state_dict``, by name.
        classes: number of outputs.
        options: of its constructor.
        features: standardised [n, d].
        edges: [2, e], as `networks.canonical_edges` returns them.
    """
    network = build(name, features.shape[1], classes, **options)
    network.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
    with torch.inference_mode(), threads_for(edges.shape[1], USUAL_WIDTH):
        logits = network.eval()(torch.from_numpy(features), torch.from_numpy(edges))
    found: Float32s = logits.float().numpy()
    return found
