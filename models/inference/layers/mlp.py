"""Inference layers of `networks.mlp`: features alone, so a row is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ringfence.models.inference.graph import Incoming
from ringfence.models.inference.layers.base import (
    Float32s,
    InferencePlan,
    multiply_in_blocks,
    weight_array,
)
from ringfence.models.inference.pool import Pool

if TYPE_CHECKING:
    from ringfence.models.inference.state import Tables

__all__ = ["MLPPlan"]


@dataclass(frozen=True, slots=True)
class MLPPlan(InferencePlan):
    """A perceptron: the second table holds its outputs."""

    gathers_features: ClassVar[bool] = False

    @staticmethod
    def layout(network: Any) -> dict[str, Any]:
        """Weights of both linear layers."""
        one, two = network.lin1, network.lin2
        return {
            "into": weight_array(one.weight.T), "bias": weight_array(one.bias),
            "onward": weight_array(two.weight.T), "out_bias": weight_array(two.bias),
        }  # fmt: skip

    def second_rows(self, near: Incoming, features: Any, tables: Tables, pool: Pool) -> None:
        """second_i = relu(x_i W1 + b1) W2 + b2."""
        hidden = self.transform(features[near.rows], self.into) + self.bias
        np.maximum(hidden, 0, out=hidden)
        tables.second[near.rows] = multiply_in_blocks(hidden, self.onward) + self.out_bias

    def outputs(self, near: Incoming, scale: Float32s, second: Float32s, pool: Pool) -> Float32s:
        """out_i = second_i."""
        return np.asarray(second[near.rows])
