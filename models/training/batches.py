"""What a network runs on in each step of its training: the whole graph, or sampled blocks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "Batch",
    "Blocks",
    "DrawBlock",
    "FullPasses",
    "Tensors",
    "TrainingGraph",
    "TrainingTargets",
]

Nodes = NDArray[np.int64]
Tensors = tuple[Any, ...]
"""The arguments of a network's ``forward``."""

DrawBlock = Callable[[Nodes, np.random.Generator], Callable[[], Tensors]]
"""Samples a block around some nodes; the tensors of the block are made on demand.

Their logits are the first rows of the network's output.
"""


class TrainingGraph(Protocol):
    """The graph that a network is trained on."""

    def tensors_for(self, network: torch.nn.Module) -> Tensors:
        """Return what ``network`` takes to run on the whole graph, epoch after epoch."""

    def block_sampler(self, fanouts: Sequence[int | None]) -> DrawBlock:
        """Return a sampler of blocks with at most so many neighbours per node, by hop."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTargets:
    """Classes of the nodes, and which nodes are learnt from and decide when to stop.

    Args:
        y: classes ``[n]``, int64; only those of train and validation nodes are read.
        train: places of the nodes to learn from.
        validation: places of the nodes whose loss ends the training.
    """

    y: Tensor
    train: Tensor
    validation: Tensor

    def __post_init__(self) -> None:
        if self.train.numel() == 0 or self.validation.numel() == 0:
            raise ValueError(
                f"{self.train.numel()} train and {self.validation.numel()} validation nodes; both "
                "are needed, the second to know when to stop: give more nodes a class, or change "
                "the split"
            )
        if both := int(torch.isin(self.train, self.validation).sum()):
            raise ValueError(
                f"{both} nodes are both train and validation nodes; early stopping needs nodes the "
                "network did not learn from: split them apart"
            )

    def check_classes(self, outputs: int) -> None:
        """Raise `ValueError` where a class has no output of the network."""
        classes = self.y[torch.cat([self.train, self.validation])]
        low, high = int(classes.min()), int(classes.max())
        if not 0 <= low <= high < outputs:
            raise ValueError(
                f"train and validation nodes have classes {low} to {high}, but the network has "
                f"{outputs} outputs, 0 to {outputs - 1}; leave out nodes whose class is unknown, "
                "or build the network with more classes"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What the network runs on at once, which rows of its output count, and their classes."""

    tensors: Callable[[], Tensors]
    rows: Tensor | slice
    truth: Tensor

    def logits(self, model: torch.nn.Module) -> Tensor:
        """Run the network; return the rows that count."""
        logits: Tensor = model(*self.tensors())[self.rows]
        return logits


class FullPasses:
    """Every step runs on the whole graph."""

    def __init__(
        self,
        network: torch.nn.Module,
        graph: TrainingGraph,
        targets: TrainingTargets,
    ) -> None:
        tensors = graph.tensors_for(network)
        self._train, self.validation = (
            [Batch(lambda: tensors, nodes, targets.y[nodes])]
            for nodes in (targets.train, targets.validation)
        )

    def train_batches(self) -> Iterable[Batch]:
        """Return the batches of one epoch."""
        return self._train


class Blocks:
    """Every step runs on the block sampled around a batch of train nodes.

    Train blocks are sampled anew in every epoch; the validation blocks are sampled once, so that
    the validation loss of two epochs differs by the weights alone.
    """

    def __init__(
        self,
        draw: DrawBlock,
        targets: TrainingTargets,
        batch_size: int,
        seed: int,
    ) -> None:
        self._draw, self._y = draw, targets.y
        self._batch_size, self._train_nodes = batch_size, _as_numpy(targets.train)
        self._rng, validation_rng = np.random.default_rng(seed % 2**64).spawn(2)
        self.validation = list(self._batches(_as_numpy(targets.validation), validation_rng))

    def train_batches(self) -> Iterable[Batch]:
        """Return the batches of one epoch."""
        return self._batches(self._rng.permutation(self._train_nodes), self._rng)

    def _batches(self, nodes: Nodes, rng: np.random.Generator) -> Iterator[Batch]:
        for part in np.split(nodes, range(self._batch_size, len(nodes), self._batch_size)):
            truth = self._y[torch.from_numpy(part).to(self._y.device)]
            yield Batch(self._draw(part, rng), slice(len(part)), truth)


def _as_numpy(nodes: Tensor) -> Nodes:
    array: Nodes = nodes.cpu().numpy().astype(np.int64)
    return array
