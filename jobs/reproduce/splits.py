"""Train and validation nodes by class, and the network trained on the subgraph they induce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ringfence.jobs.reproduce.cache import Cache
from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.models.networks import build
from ringfence.models.networks.edges import canonical_edges
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train

__all__ = ["PER_CLASS", "Model", "draw_split", "trained_model"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
PER_CLASS = 20


@dataclass(frozen=True, slots=True)
class Model:
    """A trained network: its name, weights, and the nodes it has seen (train, validation)."""

    network: str
    state: Mapping[str, Tensor]
    train_nodes: Ints
    validation_nodes: Ints

    @property
    def context(self) -> Ints:
        """Train and validation nodes together, sorted."""
        return np.sort(np.concatenate([self.train_nodes, self.validation_nodes]))

    @property
    def calibration(self) -> int:
        """As many calibration nodes, or edges, as train nodes."""
        return len(self.train_nodes)


def draw_split(y: Ints, per_class: int, seed: int) -> tuple[Ints, Ints]:
    """``per_class`` train and as many validation nodes of each class, uniformly at random."""
    rng = np.random.default_rng(seed)
    drawn = [
        rng.permutation(np.flatnonzero(y == kind))[: 2 * per_class]
        for kind in range(int(y.max()) + 1)
    ]
    train_nodes = [nodes[: len(nodes) // 2] for nodes in drawn]
    validation = [nodes[len(nodes) // 2 :] for nodes in drawn]
    return np.concatenate(train_nodes), np.concatenate(validation)


def trained_model(
    data: Dataset,
    split: int,
    seed: int,
    cache: Cache,
    network: str = "gcn",
    per_class: int = PER_CLASS,
) -> Model:
    """The network of one split, trained as the paper's code does, or read from the cache."""
    train_nodes, validation = draw_split(data.y, per_class, 1_000 * seed + split)
    stored = cache.arrays(
        f"{data.name}/model-{network}-{split}",
        lambda: _train(data, network, train_nodes, validation, 1_000 * seed + split),
    )
    state = {name: torch.from_numpy(value) for name, value in stored.items()}
    return Model(network, state, train_nodes, validation)


def _train(
    data: Dataset, network: str, train_nodes: Ints, validation: Ints, seed: int
) -> dict[str, NDArray[np.generic]]:
    nodes = np.concatenate([train_nodes, validation])
    place = np.full(data.nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    inside = place[data.edges]
    edges = inside[:, (inside >= 0).all(axis=0)]
    x = torch.from_numpy(data.x[nodes].toarray().astype(np.float32))
    rows = torch.arange(len(nodes))
    y, cut = torch.from_numpy(data.y[nodes]), len(train_nodes)
    trained = train(
        build(network, x.shape[1], data.classes, seed=seed),
        OneLabelData(x, torch.from_numpy(canonical_edges(edges, len(nodes)))),
        TrainingTargets(y, rows[:cut], rows[cut:]),
        TrainingOptions(seed=seed),
    )
    return {name: value.numpy() for name, value in trained.state.items()}
