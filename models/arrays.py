"""Conversion of a caller's values to numpy arrays, and back.

Everything is computed on numpy arrays. A caller who passes torch tensors gets tensors back; torch
is never imported for that, since a caller who has a tensor has imported it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]


def as_array(values: Any, dtype: Any = None) -> Array:
    """Return a numpy view (or copy) of arrays, torch tensors and lists; lists become float64."""
    if is_tensor(values):
        values = values.detach()
        values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).cpu().numpy()
    return np.asarray(values, dtype=dtype)


def is_tensor(values: Any) -> bool:
    """Whether the values are a torch tensor; there are none where torch was never imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def as_floats(values: Any, name: str, ndim: tuple[int, ...]) -> Floats:
    """Return float64 with one of the given numbers of dimensions."""
    array = as_array(values, np.float64)
    if array.ndim not in ndim:
        shapes = " or ".join({0: "a number", 1: "[n]", 2: "[n, classes]"}[d] for d in ndim)
        raise ValueError(f"{name} has shape {list(array.shape)}; needed: {shapes}")
    return array


def as_scores(values: Any, name: str, ndim: tuple[int, ...]) -> Floats:
    """Return float64 scores, refusing NaN and +inf, which no score function gives."""
    array = as_floats(values, name, ndim)
    if array.size and not array.max() < np.inf:
        bad = int(np.count_nonzero(~(array < np.inf)))
        raise ValueError(
            f"{name}: {bad} of {array.size} values are NaN or +inf; needed: numbers. "
            "Look for NaN in the node features and in the network's output"
        )
    return array


def as_probabilities(values: Any) -> Array:
    """Return [n, classes] probabilities, float32 or float64 as given, contiguous."""
    array = as_array(values)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"probabilities have shape {list(array.shape)}; needed: [n, classes]")
    return np.ascontiguousarray(array)


def check_probabilities(array: Array) -> None:
    """Refuse values that are not probabilities: NaN, below 0, above 1 by more than rounding."""
    if array.size and not (array.min() >= 0.0 and array.max() <= 1.001):
        refuse_probabilities(array)


def refuse_probabilities(array: Array) -> None:
    """Say what was found in place of probabilities."""
    raise ValueError(
        f"probabilities lie in [{array.min()}, {array.max()}]; needed: numbers in [0, 1]. "
        "Pass logits through ringfence.models.scores.softmax64 first"
    )


def as_uniforms(values: Any, n: int) -> Floats:
    """Return the u of n nodes: float64 [n] in [0, 1]."""
    array = as_floats(values, "u", (1,))
    if len(array) != n:
        raise ValueError(f"u has {len(array)} numbers for {n} nodes; needed: one per node")
    if n and not (array.min() >= 0.0 and array.max() <= 1.0):
        raise ValueError("u has values outside [0, 1]: take them from ringfence.models.hashing")
    return np.ascontiguousarray(array)


def as_classes(values: Any, n: int, classes: int) -> NDArray[np.int64]:
    """Return the classes of n nodes as numbers 0..classes-1."""
    array = as_array(values)
    if array.shape != (n,) or (n and array.dtype.kind not in "iu"):
        raise ValueError(
            f"classes are {array.dtype} of shape {list(array.shape)}; needed: whole numbers [{n}]"
        )
    array = array.astype(np.int64)
    if n and not (array.min() >= 0 and array.max() < classes):
        raise ValueError(
            f"classes lie in [{array.min()}, {array.max()}]; needed: 0 to {classes - 1}. "
            "Leave out nodes whose class is not known"
        )
    return np.ascontiguousarray(array)


def as_weights(weights: Any, n: int) -> Floats:
    """Return the weights of n calibration nodes; None is all 1."""
    array = np.ones(n) if weights is None else as_floats(weights, "weights", (1,))
    if len(array) != n:
        raise ValueError(f"{len(array)} weights for {n} calibration scores; needed: one per score")
    if n and not (array.min() >= 0.0 and array.max() < np.inf):
        raise ValueError(
            f"weights lie in [{array.min()}, {array.max()}]; needed: finite numbers of at least 0. "
            "Under EdgeEx a node without an edge has no weight: leave it out"
        )
    return array


def as_test_weights(test_weight: Any, ndim: tuple[int, ...] = (0, 1)) -> Floats:
    """Return the weight of the nodes to evaluate, one for all or one per node."""
    array = as_floats(test_weight, "test_weight", ndim)
    if array.size and not (array.min() > 0.0 and array.max() < np.inf):
        raise ValueError(
            f"test_weight lies in [{array.min()}, {array.max()}]; needed: finite numbers above 0"
        )
    return array


def as_limits(threshold: Any, n: int) -> Floats:
    """Return the threshold of n nodes, one for all or one per node."""
    array = as_floats(threshold, "threshold", (0, 1))
    if np.isnan(array).any():
        raise ValueError("threshold is NaN; needed: a number, or -inf for the full set")
    check_per_node(array, n, "threshold")
    return array


def check_per_node(array: Floats, n: int, name: str) -> None:
    """Refuse a list that does not have one value per node."""
    if array.ndim == 1 and len(array) != n:
        raise ValueError(f"{name} has {len(array)} values for {n} nodes; needed: one, or one each")


def like(values: Any, array: Array) -> Array:
    """Return the array; as a tensor on the device of the values if it was made from a tensor."""
    if not is_tensor(values):
        return array
    tensor: Array = sys.modules["torch"].as_tensor(array).to(values.device)  # for the caller
    return tensor
