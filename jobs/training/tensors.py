"""From the mirror's columns to the tensors that a network takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.models import hashing
from ringfence.models.networks.edges import canonical_edges


@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and spread of the training nodes' features; all nodes are scaled by these."""

    mean: Tensor
    spread: Tensor

    @classmethod
    def of(cls, features: NDArray[np.float32]) -> Scaling:
        """Measure `features` [n, d]; a constant column keeps its scale."""
        wide = features.astype(np.float64)
        spread = wide.std(axis=0)
        spread[spread == 0] = 1.0
        return cls(
            torch.from_numpy(wide.mean(axis=0).astype(np.float32)),
            torch.from_numpy(spread.astype(np.float32)),
        )

    def __call__(self, features: NDArray[np.float32]) -> Tensor:
        """Return (features - mean) / spread as a tensor [n, d]."""
        scaled: Tensor = (
            torch.from_numpy(np.ascontiguousarray(features)) - self.mean
        ) / self.spread
        return scaled


def edge_index(mirror: Mirror, mapping: GraphMapping) -> Tensor:
    """Return the edges that networks see [2, E]: undirected types both ways, loops dropped."""
    source, target, kind = mirror.edges
    both = np.array([relationship.undirected for relationship in mapping.relationships], np.bool_)
    back = both[kind] if len(kind) else np.empty(0, np.bool_)
    ends = np.stack(
        [np.concatenate([source, target[back]]), np.concatenate([target, source[back]])]
    )
    return canonical_edges(torch.from_numpy(ends), nodes=mirror.size, undirected=False)


def induced(edges: Tensor, rows: NDArray[np.int64], nodes: int) -> Tensor:
    """Return the edges inside `rows`, renumbered to positions in `rows` [2, E'].

    They are sorted in the new numbers: which bits a network gives depends on `rows`, and not on how
    the nodes were numbered before.
    """
    position = torch.full((nodes,), -1, dtype=torch.int64)
    position[torch.from_numpy(rows)] = torch.arange(len(rows))
    renumbered = position[edges]
    inside = renumbered[:, (renumbered >= 0).all(dim=0)]
    return canonical_edges(inside, nodes=len(rows), undirected=False)


def uniforms_of(mirror: Mirror, rows: NDArray[np.int64], seed: int) -> Tensor:
    """Return each node's own number u, from its key and the project's seed alone [n]."""
    keys = mirror.keys.take(rows.tolist())
    return torch.from_numpy(hashing.uniforms(keys, seed, hashing.SCORE))
