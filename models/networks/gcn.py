"""Graph convolutional network (Kipf and Welling, 2017)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.networks.pyg import GCNConv

__all__ = ["GCN"]


class GCN(torch.nn.Module):
    """Two graph convolutions: logits = A relu(A x W1 + b1) W2 + b2.

    A = D^-1/2 (adjacency + I) D^-1/2, D its row sums: every node receives its own message through
    the loop that the layer adds. A new edge changes D at both ends, so it rescales all messages of
    both nodes. A parallel edge would count twice: pass edges through ``canonical_edges`` first.

    Weights: ``conv1.lin.weight`` [hidden, in_features], ``conv1.bias`` [hidden],
    ``conv2.lin.weight`` [classes, hidden], ``conv2.bias`` [classes]. Dropout on the hidden layer
    only.

    Shapes: x ``[n, in_features]``, edge_index ``[2, edges]`` -> logits ``[n, classes]``.

    >>> network = GCN(in_features=5, classes=3)
    >>> tuple(network(torch.zeros(4, 5), torch.tensor([[0, 1], [1, 0]])).shape)
    (4, 3)
    """

    default_learning_rate: ClassVar[float] = 1e-3
    default_weight_decay: ClassVar[float] = 1e-2

    def __init__(
        self, in_features: int, classes: int, hidden: int = 64, dropout: float = 0.6
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.conv1 = GCNConv(in_features, hidden)
        self.conv2 = GCNConv(hidden, classes)

    def reset_parameters(self) -> None:
        """Draw the weights anew from torch's generator."""
        self.conv1.reset_parameters()
        self.conv2.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node, ``[n, classes]``."""
        hidden = self.conv1(x, edge_index).relu()  # [n, hidden]
        hidden = functional.dropout(hidden, self.dropout, self.training)
        logits: Tensor = self.conv2(hidden, edge_index)  # [n, classes]
        return logits
