"""Training on the whole graph in each step: cross-entropy, Adam with L2, all from one seed.

The theory asks that calibration and evaluated nodes be alike in the model's eyes, so callers pass
the subgraph induced by train and validation nodes alone, as the paper does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.training.loop import Curves, Epoch, Recipe, Trained, fit

__all__ = ["Curves", "Epoch", "Recipe", "Trained", "check_nodes", "recipe_for", "train"]


def train(
    network: torch.nn.Module,
    x: Tensor,
    edge_index: Tensor,
    y: Tensor,
    train_nodes: Tensor,
    validation_nodes: Tensor,
    *,
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

    A network with ``reset_parameters()`` (all of ringfence's) starts from weights drawn from
    ``seed``; one without starts from the weights it has. Two calls with equal arguments give equal
    bits on one machine and thread count, and torch's global generator stays as it was. Training
    ends when the validation loss has not fallen for ``patience`` epochs; the weights returned are
    those of its lowest point.

    Args:
        network: ``forward(x, edge_index) -> logits``.
        x: features ``[n, in_features]`` of the train + validation subgraph.
        edge_index: its edges ``[2, edges]``, as ``canonical_edges`` returns them.
        y: classes ``[n]``, int64; only those of train and validation nodes are read.
        train_nodes: rows of ``x`` to learn from.
        validation_nodes: rows of ``x`` that decide when to stop.
        seed: decides initial weights and dropout.
        learning_rate: of Adam; None takes the network's ``default_learning_rate``, else 0.01.
        weight_decay: L2; None takes the network's ``default_weight_decay``, else 0.
        max_epochs: the most epochs to run.
        patience: epochs without a new lowest validation loss before training ends.
        class_weights: weigh each class by n / (classes * its number of train nodes).
        on_epoch: called after each epoch; how callers draw progress.
        initial: weights by name to begin with, in place of those drawn from the seed.

    >>> from ringfence.models.networks import MLP
    >>> x, y = torch.eye(4), torch.tensor([0, 0, 1, 1])
    >>> trained = train(MLP(4, 2), x, torch.empty(2, 0, dtype=torch.int64), y,
    ...                 torch.tensor([0, 2]), torch.tensor([1, 3]), seed=1, max_epochs=3)
    >>> trained.epochs, sorted(trained.state)
    (3, ['lin1.bias', 'lin1.weight', 'lin2.bias', 'lin2.weight'])
    """
    recipe = recipe_for(
        network, check_nodes(network, x, y, train_nodes, validation_nodes), y[train_nodes],
        seed, learning_rate, weight_decay, max_epochs, patience, class_weights,
    )  # fmt: skip
    weight = recipe.class_weight_tensor(x)
    train_y, validation_y = y[train_nodes], y[validation_nodes]

    def learn(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> float:
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(x, edge_index)[train_nodes], train_y, weight)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.item()

    def validate(model: torch.nn.Module) -> tuple[float, float]:
        logits = model(x, edge_index)[validation_nodes]
        loss = functional.cross_entropy(logits, validation_y, weight).item()
        return loss, (logits.argmax(dim=1) == validation_y).double().mean().item()

    return fit(network, recipe, learn, validate, on_epoch, x.device, initial)


def recipe_for(
    network: torch.nn.Module,
    classes: int,
    train_y: Tensor,
    seed: int,
    learning_rate: float | None,
    weight_decay: float | None,
    max_epochs: int,
    patience: int,
    class_weights: bool,
) -> Recipe:
    """The recipe with the network's own defaults filled in and the class weights counted."""
    if learning_rate is None:
        learning_rate = float(getattr(network, "default_learning_rate", 0.01))
    if weight_decay is None:
        weight_decay = float(getattr(network, "default_weight_decay", 0.0))
    weights = _balancing_weights(train_y, classes) if class_weights else None
    return Recipe(seed, learning_rate, weight_decay, max_epochs, patience, weights)


def _balancing_weights(train_y: Tensor, classes: int) -> tuple[float, ...]:
    counts = torch.bincount(train_y, minlength=classes).clamp(min=1)  # unseen: as if seen once
    weights: list[float] = (train_y.numel() / (classes * counts.double())).tolist()
    return tuple(weights)


def check_nodes(
    network: torch.nn.Module, x: Tensor, y: Tensor, train_nodes: Tensor, validation_nodes: Tensor
) -> int:
    """Refuse splits that cannot be trained on; returns the number of classes of the network."""
    if train_nodes.numel() == 0 or validation_nodes.numel() == 0:
        raise ValueError(
            f"{train_nodes.numel()} train and {validation_nodes.numel()} validation nodes; both "
            "are needed, the second to know when to stop: give more nodes a class, or change the "
            "split"
        )
    both = int(torch.isin(train_nodes, validation_nodes).sum())
    if both:
        raise ValueError(
            f"{both} nodes are both train and validation nodes; early stopping needs nodes the "
            "network did not learn from: split them apart"
        )
    classes = _classes_of(network, x)
    labels = y[torch.cat([train_nodes, validation_nodes])]
    if not (0 <= int(labels.min()) <= int(labels.max()) < classes):
        raise ValueError(
            f"train and validation nodes have classes {int(labels.min())} to {int(labels.max())}, "
            f"but the network has {classes} outputs, 0 to {classes - 1}; leave out nodes whose "
            "class is unknown, or build the network with more classes"
        )
    return classes


def _classes_of(network: torch.nn.Module, x: Tensor) -> int:
    training = network.training
    with torch.no_grad():
        logits = network.eval()(x[:1], torch.empty(2, 0, dtype=torch.int64, device=x.device))
    network.train(training)
    return int(logits.size(1))
