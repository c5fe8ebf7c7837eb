"""Inference layers of `networks.appnp`: a perceptron whose outputs walk over the whole graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.kernels import appnp as kernels
from ringfence.models.inference.layers.base import Float32s
from ringfence.models.inference.layers.mlp import MLPPlan
from ringfence.models.inference.pool import Pool

__all__ = ["APPNPPlan"]


@dataclass(frozen=True, slots=True)
class APPNPPlan(MLPPlan):
    """``steps`` steps of personalised PageRank from the perceptron's outputs."""

    degrees_matter: ClassVar[bool] = True
    reaches_everyone: ClassVar[bool] = True
    option_names: ClassVar[tuple[str, ...]] = ("steps", "teleport")

    steps: int = 10
    teleport: float = 0.1

    @property
    def reach(self) -> str:
        """Why every pass is a full one."""
        return f"a change reaches {self.steps} hops: every step walks the whole graph"

    def outputs(
        self, near: InNeighbours, scale: Float32s, second: Float32s, pool: Pool
    ) -> Float32s:
        """Return z_steps of all nodes [n, classes]; `near` must hold every node, in order.

        z_0 = second, z_k = (1 - teleport) A z_{k-1} + teleport z_0.
        """
        origin = second[: len(near.rows)]
        before, after = origin.copy(), np.empty_like(origin)
        for _ in range(self.steps):
            self.step(near, scale, origin, before, after, pool)
            before, after = after, before
        return before

    def step(
        self,
        near: InNeighbours,
        scale: Float32s,
        origin: Float32s,
        before: Float32s,
        after: Float32s,
        pool: Pool,
    ) -> None:
        """Fill `after` with z_k at the rows of `near` from `before`, z_{k-1} of all they read."""
        pool(
            kernels.walk, near.offsets, near.offsets, near.sources, scale,
            self.teleport, origin, before, after,
        )  # fmt: skip
