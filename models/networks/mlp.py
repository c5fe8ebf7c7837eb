"""A perceptron on features only: the baseline that shows what the graph adds."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["MLP"]


class MLP(torch.nn.Module):
    """logits = relu(x W1 + b1) W2 + b2; edges are accepted and ignored.

    No message passes, so no score ever shifts when the graph grows, and even the naive threshold
    keeps its coverage. Dropout on the hidden layer only.

    Weights: ``lin1`` [hidden, in_features], ``lin2`` [classes, hidden], both with bias.

    Shapes: x ``[n, in_features]``, edge_index ``[2, edges]`` -> logits ``[n, classes]``.

    >>> network = MLP(in_features=5, classes=3)
    >>> tuple(network(torch.zeros(4, 5), torch.tensor([[0, 1], [1, 0]])).shape)
    (4, 3)
    """

    default_learning_rate: ClassVar[float] = 5e-3
    default_weight_decay: ClassVar[float] = 1e-2

    def __init__(
        self, in_features: int, classes: int, hidden: int = 64, dropout: float = 0.8
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.lin1 = torch.nn.Linear(in_features, hidden)
        self.lin2 = torch.nn.Linear(hidden, classes)

    def reset_parameters(self) -> None:
        """Draw the weights anew from torch's generator."""
        self.lin1.reset_parameters()
        self.lin2.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node, ``[n, classes]``."""
        hidden = self.lin1(x).relu()  # [n, hidden]
        hidden = functional.dropout(hidden, self.dropout, self.training)
        logits: Tensor = self.lin2(hidden)  # [n, classes]
        return logits
