"""GraphSAGE with the mean of the neighbours (Hamilton et al., 2017)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.networks.pyg import SAGEConv

__all__ = ["SAGE"]


class SAGE(torch.nn.Module):
    """Two layers of x'_i = W_l mean of x_j over j in N(i) + b + W_r x_i, relu between them.

    No loop is added: the node's own features have their own weight W_r, and a node without
    neighbours has a mean of zero. A user's loop or parallel edge would shift the mean: pass edges
    through ``canonical_edges`` first. Dropout on the hidden layer only.

    The paper has no GraphSAGE: dropout 0.5, learning rate 0.01 and weight decay 5e-4 are
    ringfence's choice.

    Weights: ``conv1.lin_l`` (with bias) and ``conv1.lin_r`` [hidden, in_features]; ``conv2``
    likewise [classes, hidden].

    Shapes: x ``[n, in_features]``, edge_index ``[2, edges]`` -> logits ``[n, classes]``.

    >>> network = SAGE(in_features=5, classes=3)
    >>> tuple(network(torch.zeros(4, 5), torch.tensor([[0, 1], [1, 0]])).shape)
    (4, 3)
    """

    default_learning_rate: ClassVar[float] = 1e-2
    default_weight_decay: ClassVar[float] = 5e-4

    def __init__(
        self, in_features: int, classes: int, hidden: int = 64, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.conv1 = SAGEConv(in_features, hidden, aggr="mean")
        self.conv2 = SAGEConv(hidden, classes, aggr="mean")

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
