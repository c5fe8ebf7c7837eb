"""The finished graph: logits and accuracy of a trained network when everything has arrived."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.splits import Model
from ringfence.models.replay import replay
from ringfence.models.sequences import GraphSequence

__all__ = ["accuracy", "full_logits"]

Floats = NDArray[np.float64]


def full_logits(data: Dataset, model: Model) -> Floats:
    """Logits of every node on the whole graph, float64 [n, classes]."""
    everyone = np.arange(data.nodes)
    there = np.zeros(data.nodes, np.int64)
    edges = np.zeros(data.edges.shape[1], np.int64)
    whole = GraphSequence(data.edges, there, edges, everyone[:0], there > 0, steps=0)
    (rows,) = replay(model.state, data.x, whole, watched=everyone)
    found = np.empty((data.nodes, data.classes))
    found[rows.node] = rows.logits
    return found


def accuracy(data: Dataset, model: Model) -> float:
    """Share of right predictions on the whole graph, train and validation nodes left out."""
    right = full_logits(data, model).argmax(axis=1) == data.y
    return float(np.delete(right, model.context).mean())
