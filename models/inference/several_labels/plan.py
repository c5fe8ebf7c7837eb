"""Typed SAGE ready for its kernels, from named weights; no torch is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.schema import CLASSIFIED, TypedSchema

__all__ = ["LayerWeights", "TypedPlan"]

Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer: roots [d, out] and biases [out] by label, channels [d, out] and degrees [out].

    Labels and channels are named by their places in the schema.
    """

    roots: Mapping[int, Float32s]
    biases: Mapping[int, Float32s]
    channels: Mapping[int, Float32s]
    degrees: Mapping[int, Float32s]


@dataclass(frozen=True, slots=True)
class TypedPlan:
    """Layers of a trained typed SAGE; the last one gives logits of the classified label."""

    schema: TypedSchema
    layers: tuple[LayerWeights, ...]

    @property
    def classes(self) -> int:
        """Number of outputs."""
        return len(self.layers[-1].biases[CLASSIFIED])

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns that each label must have; 0 where its columns are never read."""
        first = self.layers[0]
        widths = {label: len(weights) for label, weights in first.roots.items()}
        for place, weights in first.channels.items():
            widths[self.schema.channels[place].source] = len(weights)
        return tuple(widths.get(label, 0) for label in range(len(self.schema.labels)))

    def check_features(self, features: Sequence[Float32s], counts: Sequence[int]) -> None:
        """Raise ValueError where columns don't fit the weights, or rows the graph."""
        for label, (rows, width) in enumerate(zip(features, self.widths, strict=True)):
            fits = len(rows) >= counts[label] and width in (0, rows.shape[1])
            if not fits or rows.dtype != np.float32:
                raise ValueError(
                    f"{self.schema.labels[label]}: {rows.dtype} {list(rows.shape)}; float32 "
                    f"[{counts[label]}, {width}] is needed"
                )


def plan_typed(schema: TypedSchema, weights: Mapping[str, NDArray[np.generic]]) -> TypedPlan:
    """Return the plan of the weights of `networks.typed_sage`, by their names."""
    numbers = sorted({int(name.split(".")[1]) for name in weights})
    return TypedPlan(schema, tuple(_layer(f"layers.{number}.", weights) for number in numbers))


def _layer(front: str, weights: Mapping[str, NDArray[np.generic]]) -> LayerWeights:
    parts: dict[str, dict[int, Float32s]] = {"roots": {}, "bias": {}, "channels": {}, "degrees": {}}
    for name, array in weights.items():
        if not name.startswith(front):
            continue
        part, place, what = name.removeprefix(front).split(".")
        kept = np.ascontiguousarray(np.asarray(array, np.float32).T)
        if what == "bias":
            parts["bias"][int(place)] = kept
        else:
            parts[part][int(place)] = kept.reshape(-1) if part == "degrees" else kept
    return LayerWeights(parts["roots"], parts["bias"], parts["channels"], parts["degrees"])
