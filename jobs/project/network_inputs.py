"""From the mirror's columns to the arrays that a network takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.models import hashing
from ringfence.models.networks.edges import canonical_edges

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and spread of the training nodes' features; all nodes are scaled by these."""

    mean: Float32s
    spread: Float32s

    @classmethod
    def of(cls, features: Float32s) -> Scaling:
        """Measure `features` [n, d]; a constant column keeps its scale."""
        wide = features.astype(np.float64)
        spread = wide.std(axis=0).astype(np.float32)  # the smallest numbers become 0 here
        spread[spread == 0] = 1.0
        return cls(wide.mean(axis=0).astype(np.float32), spread)

    def __call__(self, features: Float32s) -> Float32s:
        """Return (features - mean) / spread [n, d]."""
        return np.asarray((np.ascontiguousarray(features) - self.mean) / self.spread)


def edge_index(mirror: Mirror, mapping: GraphMapping) -> Ints:
    """Return the edges that networks see [2, E]: undirected types both ways, loops dropped."""
    source, target, kind = mirror.edges
    if mapping.typed is not None:  # only those inside the classified label
        inner = np.isin(kind, mapping.typed.inner_relations)
        source, target, kind = source[inner], target[inner], kind[inner]
    kinds = mapping.relationships if mapping.typed is None else mapping.typed.relations
    both = np.array([relationship.undirected for relationship in kinds], np.bool_)
    back = both[kind] if len(kind) else np.empty(0, np.bool_)
    ends = np.stack(
        [np.concatenate([source, target[back]]), np.concatenate([target, source[back]])]
    )
    return canonical_edges(ends, nodes=mirror.size, undirected=False)


def induced(edges: Ints, rows: Ints, nodes: int) -> Ints:
    """Return the edges inside `rows`, renumbered to positions in `rows` [2, E'].

    They are sorted in the new numbers: which bits a network gives depends on `rows`, and not on how
    the nodes were numbered before.
    """
    position = np.full(nodes, -1, np.int64)
    position[rows] = np.arange(len(rows))
    renumbered = position[edges]
    inside = renumbered[:, (renumbered >= 0).all(axis=0)]
    return canonical_edges(inside, nodes=len(rows), undirected=False)


def uniforms_of(mirror: Mirror, rows: Ints, seed: int) -> NDArray[np.float64]:
    """Return each node's own number u, from its key and the project's seed alone [n]."""
    return hashing.uniforms(mirror.keys.column(rows), seed, hashing.SCORE)
