"""A whole forward pass of any module: users' own ones, and networks without inference layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.models.networks.factory import build
from ringfence.models.networks.threads import threads_for
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.training.typed_data import TypedData

__all__ = ["run_module", "run_typed_module"]

Float32s = NDArray[np.float32]


def run_module(
    name: str,
    weights: Mapping[str, NDArray[Any]],
    classes: int,
    options: Mapping[str, Any],
    features: Float32s,
    edges: NDArray[np.int64],
    threads: int = 1,
) -> Float32s:
    """Return the outputs of the network called ``name`` at every node [n, classes].

    Args:
        name: as in a model's manifest; ``package.module:Class`` for a user's own module.
        weights: of its ``state_dict``, by name.
        classes: number of outputs.
        options: of its constructor.
        features: standardised [n, d].
        edges: [2, e], as `networks.canonical_edges` returns them.
        threads: that a large graph may take.
    """
    network = build(name, features.shape[1], classes, **options)
    network.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
    with torch.inference_mode(), threads_for(edges.shape[1], threads):
        logits = network.eval()(torch.from_numpy(features), torch.from_numpy(edges))
    outputs: Float32s = logits.float().numpy()
    return outputs


def run_typed_module(
    name: str,
    weights: Mapping[str, NDArray[Any]],
    classes: int,
    options: Mapping[str, Any],
    data: TypedData,
    threads: int = 1,
) -> NDArray[np.float32]:
    """Return the outputs of the network called ``name`` at the classified label [n, classes].

    Args:
        name: as in a model's manifest; ``package.module:Class`` for a user's own module.
        weights: of its ``state_dict``, by name.
        classes: number of outputs.
        options: of its constructor.
        data: columns and edges of the whole graph.
        threads: that a large graph may take.
    """
    widths = [rows.shape[1] for rows in data.features]
    network = build_typed(name, data.schema, widths, classes, **options)
    network.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
    with torch.inference_mode(), threads_for(data.edge_count, threads):
        logits = network.eval()(*data.tensors())
    outputs: NDArray[np.float32] = logits.float().numpy()
    return outputs
