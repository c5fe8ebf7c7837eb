"""The finished graph: logits and accuracy of a trained network when everything has arrived."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.splits import Model
from ringfence.models.sequences.replay import replay
from ringfence.models.sequences.sequence import GraphSequence

__all__ = ["accuracy", "full_logits", "induced_logits"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def full_logits(data: Dataset, model: Model) -> Floats:
    """Logits of every node on the whole graph, float64 [n, classes]."""
    return induced_logits(data, model, np.arange(data.nodes))


def induced_logits(data: Dataset, model: Model, nodes: Ints) -> Floats:
    """Logits of these nodes, in their order, on the subgraph that they induce."""
    inside = np.zeros(data.nodes, bool)
    inside[nodes] = True
    edges = data.edges[:, inside[data.edges].all(axis=0)]
    there, steps = np.zeros(data.nodes, np.int64), np.zeros(edges.shape[1], np.int64)
    whole = GraphSequence(edges, there, steps, nodes[:0], there > 0, steps=0)
    (rows,) = replay(model.state, data.x, whole, watched=nodes, rows=len(nodes))
    return rows.logits


def accuracy(data: Dataset, model: Model) -> float:
    """Share of right predictions on the whole graph, train and validation nodes left out."""
    right = full_logits(data, model).argmax(axis=1) == data.y
    return float(np.delete(right, model.context).mean())
