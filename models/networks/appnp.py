"""Predict, then propagate (Klicpera et al., 2019)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.networks.pyg import Propagation

__all__ = ["APPNP"]


class APPNP(torch.nn.Module):
    """A two-layer perceptron whose logits walk over the graph by personalised PageRank.

    z_0 = relu(x W1 + b1) W2 + b2;  z_k = (1 - teleport) A z_{k-1} + teleport z_0;  logits z_steps,
    with A as in GCN: the layer adds one loop per node, and a parallel edge would count twice, so
    pass edges through ``canonical_edges`` first. Dropout on the hidden layer only.

    A change reaches ``steps`` hops (10), fading by 1 - teleport at each.

    Weights: ``lin1`` [hidden, in_features], ``lin2`` [classes, hidden], both with bias.

    Shapes: x ``[n, in_features]``, edge_index ``[2, edges]`` -> logits ``[n, classes]``.

    >>> network = APPNP(in_features=5, classes=3)
    >>> tuple(network(torch.zeros(4, 5), torch.tensor([[0, 1], [1, 0]])).shape)
    (4, 3)
    """

    default_learning_rate: ClassVar[float] = 1e-2
    default_weight_decay: ClassVar[float] = 1e-4

    def __init__(
        self,
        in_features: int,
        classes: int,
        hidden: int = 64,
        dropout: float = 0.5,
        steps: int = 10,
        teleport: float = 0.1,
    ) -> None:
        super().__init__()
        self.dropout, self.steps, self.teleport = dropout, steps, teleport
        self.lin1 = torch.nn.Linear(in_features, hidden)
        self.lin2 = torch.nn.Linear(hidden, classes)
        self.propagation = Propagation(K=steps, alpha=teleport)

    def reset_parameters(self) -> None:
        """Draw the weights anew from torch's generator."""
        self.lin1.reset_parameters()
        self.lin2.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node, ``[n, classes]``."""
        hidden = self.lin1(x).relu()  # [n, hidden]
        hidden = functional.dropout(hidden, self.dropout, self.training)
        logits: Tensor = self.propagation(self.lin2(hidden), edge_index)  # [n, classes]
        return logits
