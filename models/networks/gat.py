"""Graph attention network (Velickovic et al., 2018)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.networks.pyg import GATConv

__all__ = ["GAT"]


class GAT(torch.nn.Module):
    """Two attention layers; the first has ``heads`` heads, the second one.

    Layer: x'_i = sum over j in N(i) and i itself of a_ij W x_j, where a_ij is the softmax over j of
    leaky_relu(att_dst . W x_i + att_src . W x_j), slope 0.2. The layer replaces loops by its own
    one per node. A parallel edge would take part in the softmax twice: pass edges through
    ``canonical_edges`` first.

    ``hidden`` is the width of the whole hidden layer (the paper's 64 units): each head has
    hidden / heads of them, 8 by 8 by default. ELU between the layers, dropout on the hidden layer
    only.

    Weights: ``conv1.lin.weight`` [hidden, in_features], ``conv1.att_src`` and ``conv1.att_dst``
    [1, heads, hidden / heads], ``conv1.bias`` [hidden]; ``conv2`` likewise with one head.

    Shapes: x ``[n, in_features]``, edge_index ``[2, edges]`` -> logits ``[n, classes]``.

    >>> network = GAT(in_features=5, classes=3)
    >>> tuple(network(torch.zeros(4, 5), torch.tensor([[0, 1], [1, 0]])).shape)
    (4, 3)
    """

    default_learning_rate: ClassVar[float] = 1e-2
    default_weight_decay: ClassVar[float] = 1e-2

    def __init__(
        self,
        in_features: int,
        classes: int,
        hidden: int = 64,
        dropout: float = 0.6,
        heads: int = 8,
    ) -> None:
        super().__init__()
        if hidden % heads:
            raise ValueError(
                f"GAT got hidden={hidden} and heads={heads}; the heads share the hidden layer "
                f"evenly, so choose a multiple, such as hidden={heads * max(hidden // heads, 1)}"
            )
        self.dropout = dropout
        self.conv1 = GATConv(in_features, hidden // heads, heads=heads)
        self.conv2 = GATConv(hidden, classes, heads=1)

    def reset_parameters(self) -> None:
        """Draw the weights anew from torch's generator."""
        self.conv1.reset_parameters()
        self.conv2.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node, ``[n, classes]``."""
        hidden = functional.elu(self.conv1(x, edge_index))  # [n, hidden]
        hidden = functional.dropout(hidden, self.dropout, self.training)
        logits: Tensor = self.conv2(hidden, edge_index)  # [n, classes]
        return logits
