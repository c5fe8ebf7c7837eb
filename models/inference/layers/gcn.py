"""Inference layers of `networks.gcn`: messages on a grid, weighted by degrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.kernels import gcn as kernels
from ringfence.models.inference.layers.base import Float32s, MessagePlan, weight_array
from ringfence.models.inference.pool import Pool

if TYPE_CHECKING:
    from ringfence.models.inference.state import Tables

__all__ = ["GCNPlan"]


@dataclass(frozen=True, slots=True)
class GCNPlan(MessagePlan):
    """Two graph convolutions; first_j = s_j (x W1)_j, s_j = (incoming neighbours + 1)^-1/2."""

    degrees_matter: ClassVar[bool] = True

    @staticmethod
    def layout(weights: Mapping[str, Float32s]) -> dict[str, Any]:
        """Weights of both convolutions."""
        return {
            "into": weight_array(weights["conv1.lin.weight"].T),
            "bias": weights["conv1.bias"],
            "onward": weight_array(weights["conv2.lin.weight"].T),
            "out_bias": weights["conv2.bias"],
        }

    def second_rows(self, near: InNeighbours, features: Any, tables: Tables, pool: Pool) -> None:
        """second_i = relu(s_i (sum of first_j + first_i) + b) W2; sums are kept in slots."""
        pool(
            kernels.gcn_first, near.offsets, *near.arrays(), tables.scale, tables.first,
            self.bias, self.onward, tables.second, tables.slots, tables.sums, tables.hashes,
            self.exact_range,
        )  # fmt: skip

    def outputs(
        self, near: InNeighbours, scale: Float32s, second: Float32s, pool: Pool
    ) -> Float32s:
        """out_i = s_i (sum of s_j second_j + s_i second_i) + b."""
        out = np.empty((len(near.rows), self.classes), np.float32)
        pool(kernels.gcn_second, near.offsets, *near.arrays(), scale, second, self.out_bias, out)
        return out
