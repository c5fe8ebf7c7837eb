"""Inference layers of `networks.gat`: attention over the neighbours and the node itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.kernels import gat as kernels
from ringfence.models.inference.layers.base import Float32s, InferencePlan, weight_array
from ringfence.models.inference.pool import Pool

if TYPE_CHECKING:
    from ringfence.models.inference.state import Tables

__all__ = ["GATPlan"]


@dataclass(frozen=True, slots=True)
class GATPlan(InferencePlan):
    """Two attention layers, the first with ``heads`` heads, the second with one."""

    heads: int

    @staticmethod
    def layout(weights: Mapping[str, Float32s]) -> dict[str, Any]:
        """Weights of both layers, with columns for the energies of attention."""
        return {
            "heads": weights["conv1.att_src"].shape[1],
            "into": _with_energies(weights, "conv1"),
            "bias": weights["conv1.bias"],
            "onward": _with_energies(weights, "conv2"),
            "out_bias": weights["conv2.bias"],
        }

    def second_rows(self, near: InNeighbours, features: Any, tables: Tables, pool: Pool) -> None:
        """second_i = elu(attention over first_j + b) [W2 | W2 . att_src | W2 . att_dst]."""
        hidden = np.empty((len(near.rows), len(self.bias)), np.float32)
        heads = (len(self.bias), self.heads, self.bias, hidden)
        pool(kernels.gat_layer, near.offsets, *near.arrays(), tables.first, *heads)
        pool(kernels.gat_project, near.offsets, near.rows, hidden, self.onward, tables.second)

    def outputs(
        self, near: InNeighbours, scale: Float32s, second: Float32s, pool: Pool
    ) -> Float32s:
        """out_i = attention over second_j + b, with one head."""
        out = np.empty((len(near.rows), self.classes), np.float32)
        head = (self.classes, 1, self.out_bias, out)
        pool(kernels.gat_layer, near.offsets, *near.arrays(), second, *head)
        return out


def _with_energies(weights: Mapping[str, Float32s], conv: str) -> Float32s:
    """Columns for the values, then W . att_src and W . att_dst of every head."""
    values = weights[f"{conv}.lin.weight"].T  # [d, heads * per]
    vectors = [weights[f"{conv}.{name}"] for name in ("att_src", "att_dst")]  # [1, heads, per]
    apart = values.reshape(len(values), vectors[0].shape[1], -1)
    energies = [(apart * vector).sum(axis=-1) for vector in vectors]
    return weight_array(np.concatenate([values, *energies], axis=1))
