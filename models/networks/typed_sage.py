"""GraphSAGE over several labels: a mean per channel, added up (Hamilton et al., 2017; RelBench)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from ringfence.models.schema import CLASSIFIED, TypedSchema

__all__ = ["TypedSAGE"]

EdgeType = tuple[str, str, str]


class TypedSAGE(torch.nn.Module):
    """One to three layers of x'_i = W_t x_i + b_t + sum over channels c of W_c mean of x_j.

    j runs over i's neighbours through the channel c; t is the label of i. relu and dropout between
    the layers; the last one gives the logits of the classified label alone. A node without a
    neighbour in a channel has a mean of zero there. With ``degrees`` each channel adds
    w_c log(1 + how many neighbours i has in it).

    Weights by place, so that no name of a user's graph stands in them: ``layers.L.roots.T`` (label
    T, with bias), ``layers.L.channels.C`` (channel C), ``layers.L.degrees.C``.

    Shapes: x by label ``[n_label, in_features[label]]``, edges by channel ``[2, edges]`` (places of
    source and receiver in their labels) -> logits ``[nodes of the classified label, classes]``.

    >>> from ringfence.models.schema import Relation
    >>> schema = TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),))
    >>> network = TypedSAGE(schema, in_features=(3, 2), classes=4)
    >>> x = {"Flight": torch.zeros(5, 3), "Airport": torch.zeros(2, 2)}
    >>> tuple(network(x, {}).shape)
    (5, 4)
    """

    default_learning_rate: ClassVar[float] = 1e-2
    default_weight_decay: ClassVar[float] = 5e-4

    def __init__(
        self,
        schema: TypedSchema,
        in_features: Sequence[int],
        classes: int,
        hidden: int = 64,
        layers: int = 2,
        dropout: float = 0.5,
        degrees: bool = False,
    ) -> None:
        super().__init__()
        if not 1 <= layers <= 3:
            raise ValueError(f"{layers} layers; typed_sage has 1 to 3")
        self.schema = schema
        self.dropout = dropout
        self.layers = torch.nn.ModuleList()
        widths = list(in_features)
        for number, labels in enumerate(schema.labels_by_layer(layers)):
            out = classes if number == layers - 1 else hidden
            self.layers.append(TypedSAGELayer(schema, sorted(labels), widths, out, degrees))
            widths = [hidden] * len(schema.labels)

    def reset_parameters(self) -> None:
        """Draw the weights anew from torch's generator."""
        for module in self.modules():
            if isinstance(module, torch.nn.Linear):
                module.reset_parameters()

    def forward(self, x: Mapping[str, Tensor], edges: Mapping[EdgeType, Tensor]) -> Tensor:
        """Logits of the classified label's nodes; a channel without edges may be left out."""
        rows = {place: x[label] for place, label in enumerate(self.schema.labels) if label in x}
        for number, layer in enumerate(self.layers):
            rows = layer(rows, edges)
            if number + 1 < len(self.layers):
                rows = {
                    place: functional.dropout(one.relu(), self.dropout, self.training)
                    for place, one in rows.items()
                }
        return rows[CLASSIFIED]


class TypedSAGELayer(torch.nn.Module):
    """One layer: a root per label that it computes, a weight per channel into those."""

    def __init__(
        self,
        schema: TypedSchema,
        labels: Sequence[int],
        widths: Sequence[int],
        out: int,
        degrees: bool,
    ) -> None:
        super().__init__()
        self.schema = schema
        self.roots = torch.nn.ModuleDict({str(t): torch.nn.Linear(widths[t], out) for t in labels})
        heard = [(c, one) for c, one in enumerate(schema.channels) if one.target in labels]
        self.channels = torch.nn.ModuleDict(
            {str(c): torch.nn.Linear(widths[one.source], out, bias=False) for c, one in heard}
        )
        self.degrees = torch.nn.ModuleDict(
            {str(c): torch.nn.Linear(1, out, bias=False) for c, _ in heard} if degrees else {}
        )

    def forward(
        self, rows: Mapping[int, Tensor], edges: Mapping[EdgeType, Tensor]
    ) -> dict[int, Tensor]:
        """Rows of the labels that this layer computes."""
        out = {int(label): root(rows[int(label)]) for label, root in self.roots.items()}
        for place, weights in self.channels.items():
            channel, name = self.schema.channels[int(place)], self.schema.edge_types[int(place)]
            if name not in edges or not edges[name].size(1):
                continue
            source, target = edges[name]
            n = len(out[channel.target])
            count = torch.bincount(target, minlength=n).to(out[channel.target].dtype)
            share = count.clamp(min=1).reciprocal().unsqueeze(1)
            mean = _summed(rows[channel.source], source, target, n) * share
            out[channel.target] = out[channel.target] + weights(mean)
            if place in self.degrees:
                told = self.degrees[place](torch.log1p(count).unsqueeze(1))
                out[channel.target] = out[channel.target] + told
        return out


def _summed(rows: Tensor, source: Tensor, target: Tensor, n: int) -> Tensor:
    """Sums of the sources' rows by receiver [n, width]."""
    total = rows.new_zeros(n, rows.size(1))
    return total.index_add(0, target, rows[source])
