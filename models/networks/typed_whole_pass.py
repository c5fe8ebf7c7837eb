"""A whole forward pass of any typed module: users' own ones, which have no inference layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.training.typed_data import TypedData

__all__ = ["run_typed_module"]


def run_typed_module(
    name: str,
    weights: Mapping[str, NDArray[Any]],
    classes: int,
    options: Mapping[str, Any],
    data: TypedData,
) -> NDArray[np.float32]:
    """Return the outputs of the network called ``name`` at the classified label [n, classes].

    Args:
        name: as in a model's manifest; ``package.module:Class`` for a user's own module.
        weights: of its ``state_dict``, by name.
        classes: number of outputs.
        options: of its constructor.
        data: columns and edges of the whole graph.
    """
    widths = [rows.shape[1] for rows in data.features]
    network = build_typed(name, data.schema, widths, classes, **options)
    network.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
    with torch.inference_mode():
        logits = network.eval()(*data.tensors())
    found: NDArray[np.float32] = logits.float().numpy()
    return found
