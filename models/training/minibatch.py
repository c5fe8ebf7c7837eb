"""Training in batches of sampled neighbourhoods, for graphs too large for a full pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.training.full_batch import check_nodes, recipe_for
from ringfence.models.training.loop import Epoch, Trained, fit
from ringfence.models.training.sampling import Neighbours, Nodes, neighbours_of, sample_block

__all__ = ["train_in_batches"]

SampledBatch = tuple[Tensor, Tensor, Tensor]
"""Features and edges of a block, and the classes of its seeds."""


def train_in_batches(
    network: torch.nn.Module,
    x: Tensor,
    edge_index: Tensor,
    y: Tensor,
    train_nodes: Tensor,
    validation_nodes: Tensor,
    *,
    seed: int,
    batch_size: int = 512,
    fanouts: Sequence[int | None] = (10, 5),
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    max_epochs: int = 1000,
    patience: int = 100,
    class_weights: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    initial: Mapping[str, Tensor] | None = None,
) -> Trained:
    """As ``training.train``, with one optimiser step per batch of train nodes.

    A batch is the block that ``sample_block`` draws around its nodes: the whole network runs on
    that small graph, so any module works, and peak memory follows ``batch_size`` and ``fanouts``.
    Train blocks are drawn anew in every epoch; the validation blocks are drawn once, so that the
    validation loss of two epochs differs by the weights alone. What sampling costs: GCN and APPNP
    normalise by the degrees of the block, and APPNP walks no further than ``len(fanouts)`` hops.

    Args:
        batch_size: train nodes per step.
        fanouts: the most neighbours per node, one number per hop; None takes all.

    The other arguments, the result and the promise of equal bits are those of ``train``.

    >>> from ringfence.models.networks import SAGE
    >>> x, y = torch.eye(4), torch.tensor([0, 0, 1, 1])
    >>> edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    >>> train_in_batches(SAGE(4, 2), x, edges, y, torch.tensor([0, 2]), torch.tensor([1, 3]),
    ...                  seed=1, batch_size=1, max_epochs=3).epochs
    3
    """
    recipe = recipe_for(
        network, check_nodes(network, x, y, train_nodes, validation_nodes), y[train_nodes],
        seed, learning_rate, weight_decay, max_epochs, patience, class_weights,
    )  # fmt: skip
    weight = recipe.class_weight_tensor(x)
    graph = neighbours_of(edge_index.cpu().numpy(), len(x))
    train_rng, validation_rng = np.random.default_rng(seed % 2**64).spawn(2)

    def batches(nodes: Nodes, rng: np.random.Generator) -> Iterator[SampledBatch]:
        parts = np.split(nodes, range(batch_size, len(nodes), batch_size))
        return (_batch(graph, x, y, part, fanouts, rng) for part in parts)

    held_out = list(batches(_array(validation_nodes), validation_rng))

    def learn(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> float:
        total = 0.0
        for block_x, edges, truth in batches(train_rng.permutation(_array(train_nodes)), train_rng):
            optimiser.zero_grad()
            logits = model(block_x, edges)[: len(truth)]
            loss = functional.cross_entropy(logits, truth, weight)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.item() * len(truth)
        return total / len(train_nodes)

    def validate(model: torch.nn.Module) -> tuple[float, float]:
        logits = torch.cat([model(bx, edges)[: len(truth)] for bx, edges, truth in held_out])
        truth = torch.cat([truth for _, _, truth in held_out])
        loss = functional.cross_entropy(logits, truth, weight).item()
        return loss, (logits.argmax(dim=1) == truth).double().mean().item()

    return fit(network, recipe, learn, validate, on_epoch, x.device, initial)


def _batch(
    graph: Neighbours,
    x: Tensor,
    y: Tensor,
    seeds: Nodes,
    fanouts: Sequence[int | None],
    rng: np.random.Generator,
) -> SampledBatch:
    block = sample_block(graph, seeds, fanouts, rng)
    nodes = torch.from_numpy(block.nodes).to(x.device)
    edges = torch.from_numpy(block.edge_index).to(x.device)
    return x[nodes], edges, y[nodes[: block.seeds]]


def _array(nodes: Tensor) -> Nodes:
    array: Nodes = nodes.cpu().numpy().astype(np.int64)
    return array
