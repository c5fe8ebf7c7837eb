"""A number of 64 bits per node, compiled into what compares lists of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import compiled, inlined

Array = Any


@inlined
def node_hash(node: Any) -> Any:
    """A number of 64 bits for a node (splitmix64)."""
    mixed = np.uint64(node + 1) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@compiled
def hash_nodes(nodes: Array, out: Array) -> None:
    """Fill ``out`` with the number of each node."""
    for r in range(len(nodes)):
        out[r] = node_hash(nodes[r])
