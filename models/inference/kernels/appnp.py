"""One step of APPNP's walk over the whole graph, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import released

Array = Any


@released
def walk(
    start: int, stop: int, offsets: Array, sources: Array, scale: Array,
    teleport: float, origin: Array, before: Array, after: Array,
) -> None:  # fmt: skip
    """after_i = (1 - teleport) s_i (sum of s_j before_j + s_i before_i) + teleport origin_i."""
    width = origin.shape[1]
    stay, home = np.float32(1.0 - teleport), np.float32(teleport)
    for i in range(start, stop):
        node_scale = scale[i]
        for c in range(width):
            after[i, c] = node_scale * before[i, c]
        for e in range(offsets[i], offsets[i + 1]):
            j = sources[e]
            factor = scale[j]
            for c in range(width):
                after[i, c] += factor * before[j, c]
        for c in range(width):
            after[i, c] = stay * (node_scale * after[i, c]) + home * origin[i, c]
