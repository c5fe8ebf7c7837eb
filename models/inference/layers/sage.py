"""Inference layers of `networks.sage`: means of the neighbours, and the node's own features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.kernels import sage as kernels
from ringfence.models.inference.layers.base import Float32s, InferencePlan, weight_array
from ringfence.models.inference.pool import Pool

if TYPE_CHECKING:
    from ringfence.models.inference.state import Tables

__all__ = ["SAGEPlan"]


@dataclass(frozen=True, slots=True)
class SAGEPlan(InferencePlan):
    """Two layers of means; root [d, hidden]: weights of a node's own features."""

    root: Float32s

    @staticmethod
    def layout(weights: Mapping[str, Float32s]) -> dict[str, Any]:
        """Weights of both layers; `onward` has those of the mean, then those of the node itself."""
        both = [weights["conv2.lin_l.weight"].T, weights["conv2.lin_r.weight"].T]
        return {
            "into": weight_array(weights["conv1.lin_l.weight"].T),
            "root": weight_array(weights["conv1.lin_r.weight"].T),
            "bias": weights["conv1.lin_l.bias"],
            "onward": np.concatenate(both, axis=1),
            "out_bias": weights["conv2.lin_l.bias"],
        }

    def second_rows(self, near: InNeighbours, features: Any, tables: Tables, pool: Pool) -> None:
        """second_i = relu(mean of first_j + x_i root + b) [W2_l | W2_r]."""
        root = self.transform(features[near.rows], self.root)
        pool(
            kernels.sage_first, near.offsets, *near.arrays(), tables.first, root,
            self.bias, self.onward, tables.second,
        )  # fmt: skip

    def outputs(
        self, near: InNeighbours, scale: Float32s, second: Float32s, pool: Pool
    ) -> Float32s:
        """out_i = mean of the left half of second_j + b + the right half of second_i."""
        out = np.empty((len(near.rows), self.classes), np.float32)
        pool(kernels.sage_second, near.offsets, *near.arrays(), second, self.out_bias, out)
        return out
