"""Inference layers of `networks.mlp`: only features, so a row is computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.kernels import transform as kernels
from ringfence.models.inference.layers.base import Float32s, InferencePlan, weight_array
from ringfence.models.inference.pool import Pool

if TYPE_CHECKING:
    from ringfence.models.inference.state import Tables

__all__ = ["MLPPlan"]


@dataclass(frozen=True, slots=True)
class MLPPlan(InferencePlan):
    """A perceptron: the second table holds its outputs."""

    gathers_features: ClassVar[bool] = False

    @staticmethod
    def layout(weights: Mapping[str, Float32s]) -> dict[str, Any]:
        """Weights of both linear layers."""
        return {
            "into": weight_array(weights["lin1.weight"].T),
            "bias": weights["lin1.bias"],
            "onward": weight_array(weights["lin2.weight"].T),
            "out_bias": weights["lin2.bias"],
        }

    def second_rows(self, near: InNeighbours, features: Any, tables: Tables, pool: Pool) -> None:
        """second_i = relu(x_i W1 + b1) W2 + b2."""
        hidden = self.transform(features[near.rows], self.into) + self.bias
        np.maximum(hidden, 0, out=hidden)
        out = np.empty((len(hidden), self.classes), np.float32)
        kernels.multiply_rows(0, len(hidden), hidden, self.onward, out)
        tables.second[near.rows] = out + self.out_bias

    def outputs(
        self, near: InNeighbours, scale: Float32s, second: Float32s, pool: Pool
    ) -> Float32s:
        """out_i = second_i."""
        return np.asarray(second[near.rows])
