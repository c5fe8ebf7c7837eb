"""The loop under every kind of training: epochs, early stopping, curves, the best weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ringfence.models.seeding import seeded

__all__ = ["Curves", "Epoch", "Learn", "Recipe", "Trained", "Validate", "fit"]

Learn = Callable[[torch.nn.Module, torch.optim.Optimizer], float]
"""One epoch of steps on a network in training mode; returns the train loss."""

Validate = Callable[[torch.nn.Module], tuple[float, float]]
"""Loss and accuracy on the validation nodes, for a network in evaluation mode."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """What ``on_epoch`` gets after each epoch; ``number`` counts from 0."""

    number: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    best_epoch: int


@dataclass(frozen=True, slots=True)
class Curves:
    """The learning curves, one value per epoch."""

    train_loss: tuple[float, ...]
    validation_loss: tuple[float, ...]
    validation_accuracy: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides the result besides network and data; kept with it."""

    seed: int
    learning_rate: float
    weight_decay: float
    max_epochs: int
    patience: int
    class_weights: tuple[float, ...] | None

    def __post_init__(self) -> None:
        if self.max_epochs < 1 or self.patience < 1:
            raise ValueError(
                f"max_epochs is {self.max_epochs} and patience {self.patience}; "
                "both must be at least 1"
            )
        if not (self.learning_rate > 0 and self.weight_decay >= 0):
            raise ValueError(
                f"learning_rate is {self.learning_rate} and weight_decay {self.weight_decay}; "
                "the first must be above 0, the second at least 0"
            )

    def class_weight_tensor(self, like: Tensor) -> Tensor | None:
        """The class weights as a tensor of ``like``'s type and device, or None."""
        return None if self.class_weights is None else like.new_tensor(self.class_weights)


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network: the weights of its best epoch, how it got there, and from what."""

    state: Mapping[str, Tensor]
    curves: Curves
    best_epoch: int
    recipe: Recipe

    @property
    def epochs(self) -> int:
        """How many epochs ran."""
        return len(self.curves.train_loss)

    @property
    def stopped_early(self) -> bool:
        """Whether the validation loss stopped falling before the last epoch allowed."""
        return self.epochs < self.recipe.max_epochs

    @property
    def validation_accuracy(self) -> float:
        """Accuracy on the validation nodes at the best epoch."""
        return self.curves.validation_accuracy[self.best_epoch]


def fit(
    network: torch.nn.Module,
    recipe: Recipe,
    learn: Learn,
    validate: Validate,
    on_epoch: Callable[[Epoch], None] | None,
    device: torch.device,
    initial: Mapping[str, Tensor] | None = None,
) -> Trained:
    """Run ``learn`` and ``validate`` in turn until the validation loss stops falling.

    Works on a copy of ``network``, whose weights are drawn anew from the recipe's seed where it has
    ``reset_parameters()``; with ``initial`` it begins with these weights instead. The state
    returned is that of the lowest validation loss, the earliest one among equals.
    """
    with seeded(recipe.seed, device):
        model = fresh_copy(network)
        if initial is not None:
            model.load_state_dict(dict(initial))
        optimiser = torch.optim.Adam(
            model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        epochs: list[Epoch] = []
        state: dict[str, Tensor] = {}
        for number in range(recipe.max_epochs):
            epoch = _run_epoch(model, optimiser, learn, validate, number, epochs)
            epochs.append(epoch)
            if epoch.best_epoch == number:
                state = {name: value.clone() for name, value in model.state_dict().items()}
            if on_epoch is not None:
                on_epoch(epoch)
            if number - epoch.best_epoch >= recipe.patience:
                break
    return Trained(state, _curves(epochs), epochs[-1].best_epoch, recipe)


def fresh_copy(network: torch.nn.Module) -> torch.nn.Module:
    """A copy to train, with new weights from torch's generator if it has ``reset_parameters``."""
    model = copy.deepcopy(network)
    reset = getattr(model, "reset_parameters", None)
    if callable(reset):
        reset()
    return model


def _run_epoch(
    model: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    learn: Learn,
    validate: Validate,
    number: int,
    before: list[Epoch],
) -> Epoch:
    train_loss = learn(model.train(), optimiser)
    with torch.no_grad():
        validation_loss, accuracy = validate(model.eval())
    if not (math.isfinite(train_loss) and math.isfinite(validation_loss)):
        raise ValueError(
            f"training diverged in epoch {number}: train loss {train_loss}, validation loss "
            f"{validation_loss}; check that the features are finite, or lower learning_rate"
        )
    best = before[-1].best_epoch if before else number
    if before and validation_loss < before[best].validation_loss:
        best = number
    return Epoch(number, train_loss, validation_loss, accuracy, best)


def _curves(epochs: list[Epoch]) -> Curves:
    return Curves(
        train_loss=tuple(epoch.train_loss for epoch in epochs),
        validation_loss=tuple(epoch.validation_loss for epoch in epochs),
        validation_accuracy=tuple(epoch.validation_accuracy for epoch in epochs),
    )
