"""Training any network on any graph: cross-entropy, Adam with L2, early stopping, one seed.

The theory requires that the model treats calibration and evaluated nodes alike, so callers pass
the subgraph induced by train and validation nodes alone, as the paper does; with several labels
the nodes of the other labels, the context, belong to it.

A graph is `OneLabelData`, or `TypedData` for several labels. Each knows which tensors its networks
take and how a neighbourhood is sampled (`batches.TrainingGraph`); all else is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.training.batches import Blocks, FullPasses, TrainingGraph, TrainingTargets
from ringfence.models.training.loop import Epoch, Recipe, Trained, fit

__all__ = ["TrainingOptions", "TrainingTargets", "balancing_weights", "train"]


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How to train.

    Args:
        seed: decides initial weights, dropout and sampled blocks.
        learning_rate: of Adam; None takes the network's ``default_learning_rate``, else 0.01.
        weight_decay: L2; None takes the network's ``default_weight_decay``, else 0.
        max_epochs: the most epochs to run.
        patience: epochs without a new lowest validation loss before training ends.
        class_weights: weigh each class by n / (classes * its number of train nodes).
        batch_size: train nodes per step; 0 runs on the whole graph in each step.
        fanouts: the most neighbours per node of a sampled block, one number per hop; None takes
            all. Of networks for several labels: per relationship type and direction.
    """

    seed: int
    learning_rate: float | None = None
    weight_decay: float | None = None
    max_epochs: int = 1000
    patience: int = 100
    class_weights: bool = False
    batch_size: int = 0
    fanouts: Sequence[int | None] = (10, 5)

    def recipe_for(
        self, network: torch.nn.Module, targets: TrainingTargets, outputs: int
    ) -> Recipe:
        """Return the recipe: the network's own defaults filled in, the class weights counted."""
        learning_rate, weight_decay = self.learning_rate, self.weight_decay
        if learning_rate is None:
            learning_rate = float(getattr(network, "default_learning_rate", 0.01))
        if weight_decay is None:
            weight_decay = float(getattr(network, "default_weight_decay", 0.0))
        weights = None
        if self.class_weights:
            weights = balancing_weights(targets.y[targets.train], outputs)
        return Recipe(
            self.seed, learning_rate, weight_decay, self.max_epochs, self.patience, weights
        )


def train(
    network: torch.nn.Module,
    graph: TrainingGraph,
    targets: TrainingTargets,
    options: TrainingOptions,
    on_epoch: Callable[[Epoch], None] | None = None,
    initial: Mapping[str, Tensor] | None = None,
) -> Trained:
    """Train a copy of ``network``; ``network`` itself is not changed.

    A network with ``reset_parameters()`` (all of ringfence's) starts from weights drawn from the
    seed; one without starts from the weights it has. Two calls with equal arguments give equal
    bits on one machine and thread count, and torch's global generator stays as it was. Training
    ends when the validation loss has not fallen for ``patience`` epochs; the weights returned are
    those of its lowest point.

    With a ``batch_size``, the whole network runs on the block sampled around each batch, so any
    module works, and peak memory follows ``batch_size`` and ``fanouts``. What sampling costs: GCN
    and APPNP normalise by the degrees of the block, and APPNP walks no further than
    ``len(fanouts)`` hops.

    Args:
        network: a module whose ``forward`` takes the graph's tensors and returns logits.
        graph: what to train on.
        targets: classes, train nodes and validation nodes, by their places in the graph.
        options: how to train.
        on_epoch: called after each epoch; how callers draw progress.
        initial: weights by name to begin with, in place of those drawn from the seed.

    >>> from ringfence.models.networks import MLP, SAGE
    >>> from ringfence.models.training.one_label_data import OneLabelData
    >>> graph = OneLabelData(torch.eye(4), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]))
    >>> targets = TrainingTargets(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 2]),
    ...                           torch.tensor([1, 3]))
    >>> trained = train(MLP(4, 2), graph, targets, TrainingOptions(seed=1, max_epochs=3))
    >>> trained.epochs, sorted(trained.state)
    (3, ['lin1.bias', 'lin1.weight', 'lin2.bias', 'lin2.weight'])
    >>> batches = TrainingOptions(seed=1, max_epochs=3, batch_size=1)
    >>> train(SAGE(4, 2), graph, targets, batches).epochs
    3
    """
    sampler = _choose_sampler(network, graph, targets, options)
    example = _run_once(network, sampler)
    targets.check_classes(outputs := example.size(1))
    recipe = options.recipe_for(network, targets, outputs)
    weight = recipe.class_weight_tensor(example)

    def learn(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> float:
        total = 0.0
        for batch in sampler.train_batches():
            optimiser.zero_grad()
            loss = functional.cross_entropy(batch.logits(model), batch.truth, weight)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.item() * len(batch.truth)
        return total / len(targets.train)

    def validate(model: torch.nn.Module) -> tuple[float, float]:
        logits = torch.cat([batch.logits(model) for batch in sampler.validation])
        truth = torch.cat([batch.truth for batch in sampler.validation])
        loss = functional.cross_entropy(logits, truth, weight).item()
        return loss, (logits.argmax(dim=1) == truth).double().mean().item()

    return fit(network, recipe, learn, validate, on_epoch, example.device, initial)


def _choose_sampler(
    network: torch.nn.Module,
    graph: TrainingGraph,
    targets: TrainingTargets,
    options: TrainingOptions,
) -> FullPasses | Blocks:
    if not options.batch_size:
        return FullPasses(network, graph, targets)
    draw = graph.block_sampler(options.fanouts)
    return Blocks(draw, targets, options.batch_size, options.seed)


def _run_once(network: torch.nn.Module, sampler: FullPasses | Blocks) -> Tensor:
    """Run the network on a validation batch: lazy modules get their weights here."""
    training = network.training
    with torch.no_grad():
        logits = sampler.validation[0].logits(network.eval())
    network.train(training)
    return logits


def balancing_weights(train_y: Tensor, classes: int) -> tuple[float, ...]:
    """Return n / (classes * train nodes of the class) for each class."""
    counts = torch.bincount(train_y, minlength=classes).clamp(min=1)  # unseen: as if seen once
    weights: list[float] = (train_y.numel() / (classes * counts.double())).tolist()
    return tuple(weights)
