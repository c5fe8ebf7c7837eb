"""Training on typed graphs: full passes, or blocks that know nothing later.

As in `full_batch`, callers pass the subgraph of train and validation nodes; the nodes of other
labels, the context, belong to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ringfence.models.networks.typed_sage import TypedSAGE
from ringfence.models.schema import CLASSIFIED
from ringfence.models.training.full_batch import recipe_for
from ringfence.models.training.loop import Epoch, Recipe, Trained, fit
from ringfence.models.training.typed_blocks import TypedBlock, sample_typed_block, timed_graph
from ringfence.models.training.typed_data import TypedData

__all__ = ["train_typed", "train_typed_in_batches"]

Ints = NDArray[np.int64]
Inputs = tuple[dict[str, Tensor], dict[tuple[str, str, str], Tensor]]


def train_typed(
    network: torch.nn.Module,
    data: TypedData,
    y: Tensor,
    train_nodes: Tensor,
    validation_nodes: Tensor,
    *,
    classes: int,
    seed: int,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    max_epochs: int = 1000,
    patience: int = 100,
    class_weights: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    initial: Mapping[str, Tensor] | None = None,
) -> Trained:
    """Train a copy of ``network`` with full passes; ``network`` itself is not changed.

    Args:
        network: ``forward(x_dict, edge_index_dict) -> logits`` of the classified label's nodes.
        data: columns and edges of the subgraph to train on.
        y: classes of the classified label's nodes ``[n]``, int64.
        train_nodes, validation_nodes: places among them.
        classes: number of outputs.

    The other arguments, the result and the promise of equal bits are those of ``train``.
    """
    recipe = _recipe(
        network, y, train_nodes, validation_nodes, classes, seed, learning_rate, weight_decay,
        max_epochs, patience, class_weights,
    )  # fmt: skip
    x, edges = data.tensors()
    weight = recipe.class_weight_tensor(x[data.schema.labels[CLASSIFIED]])
    same: tuple[Any, ...] = ()  # what every epoch would compute again
    if isinstance(network, TypedSAGE):
        same = (network.first_means(x, edges),)

    def learn(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> float:
        optimiser.zero_grad()
        logits = model(x, edges, *same)
        loss = functional.cross_entropy(logits[train_nodes], y[train_nodes], weight)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.item()

    def validate(model: torch.nn.Module) -> tuple[float, float]:
        return _judge(model(x, edges, *same)[validation_nodes], y[validation_nodes], weight)

    return fit(network, recipe, learn, validate, on_epoch, torch.device("cpu"), initial)


def train_typed_in_batches(
    network: torch.nn.Module,
    data: TypedData,
    y: Tensor,
    train_nodes: Tensor,
    validation_nodes: Tensor,
    *,
    classes: int,
    seed: int,
    batch_size: int = 512,
    fanouts: Sequence[int] = (10, 10),
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    max_epochs: int = 1000,
    patience: int = 100,
    class_weights: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    initial: Mapping[str, Tensor] | None = None,
) -> Trained:
    """As `train_typed`, with one optimiser step per batch of time-safe blocks.

    Train blocks are drawn anew in every epoch; the validation blocks are drawn once, so that the
    validation loss of two epochs differs by the weights alone.

    Args:
        batch_size: train nodes per step.
        fanouts: the most neighbours per node and channel, one number per hop (layer).
    """
    recipe = _recipe(
        network, y, train_nodes, validation_nodes, classes, seed, learning_rate, weight_decay,
        max_epochs, patience, class_weights,
    )  # fmt: skip
    graph = timed_graph(data)
    weight = recipe.class_weight_tensor(torch.empty(0))
    train_rng, validation_rng = np.random.default_rng(seed % 2**64).spawn(2)
    train, held_out = train_nodes.numpy(), validation_nodes.numpy()

    def blocks(nodes: Ints, rng: np.random.Generator) -> Iterator[tuple[TypedBlock, Tensor]]:
        for part in np.split(nodes, range(batch_size, len(nodes), batch_size)):
            yield sample_typed_block(graph, part, fanouts, rng), y[torch.from_numpy(part)]

    validation = list(blocks(held_out, validation_rng))  # their columns are taken when needed

    def learn(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> float:
        total = 0.0
        for block, truth in blocks(train_rng.permutation(train), train_rng):
            optimiser.zero_grad()
            logits = model(*_block_inputs(data, block))[: len(truth)]
            loss = functional.cross_entropy(logits, truth, weight)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.item() * len(truth)
        return total / len(train)

    def validate(model: torch.nn.Module) -> tuple[float, float]:
        logits = [model(*_block_inputs(data, one))[: len(truth)] for one, truth in validation]
        return _judge(torch.cat(logits), y[validation_nodes], weight)

    return fit(network, recipe, learn, validate, on_epoch, torch.device("cpu"), initial)


def _block_inputs(data: TypedData, block: TypedBlock) -> Inputs:
    """The tensors of a block; rows whose columns are later than their seed are blank."""
    x = {}
    for number, label in enumerate(data.schema.labels):
        rows = data.features[number][block.places[number]]
        if block.blank[number].any():
            rows[block.blank[number]] = data.blank[number]
        x[label] = torch.from_numpy(rows)
    edges = {
        kind: torch.from_numpy(pair)
        for kind, pair in zip(data.schema.edge_types, block.edges, strict=True)
    }
    return x, edges


def _judge(logits: Tensor, truth: Tensor, weight: Tensor | None) -> tuple[float, float]:
    loss = functional.cross_entropy(logits, truth, weight).item()
    return loss, (logits.argmax(dim=1) == truth).double().mean().item()


def _recipe(
    network: torch.nn.Module,
    y: Tensor,
    train_nodes: Tensor,
    validation_nodes: Tensor,
    classes: int,
    seed: int,
    learning_rate: float | None,
    weight_decay: float | None,
    max_epochs: int,
    patience: int,
    class_weights: bool,
) -> Recipe:
    """The recipe; splits that can't be trained on are refused."""
    if not train_nodes.numel() or not validation_nodes.numel():
        raise ValueError(
            f"{train_nodes.numel()} train and {validation_nodes.numel()} validation nodes; both "
            "are needed, the second to know when to stop: give more nodes a class, or change the "
            "split"
        )
    if bool(torch.isin(train_nodes, validation_nodes).any()):
        raise ValueError("a node is both train and validation node; split them apart")
    return recipe_for(
        network, classes, y[train_nodes], seed, learning_rate, weight_decay, max_epochs, patience,
        class_weights,
    )  # fmt: skip
