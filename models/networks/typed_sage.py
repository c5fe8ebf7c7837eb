"""GraphSAGE over several labels: a mean per channel, added up (Hamilton et al., 2017; RelBench)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

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

    def first_means(
        self, x: Mapping[str, Tensor], edges: Mapping[EdgeType, Tensor]
    ) -> dict[str, Tensor]:
        """The first layer's messages, by channel: the same in every epoch over one graph."""
        rows = {place: x[label] for place, label in enumerate(self.schema.labels) if label in x}
        first = cast(TypedSAGELayer, self.layers[0])
        return {
            place: first.mean(place, rows, edges)
            for place in first.channels
            if first.has(place, edges)
        }

    def forward(
        self,
        x: Mapping[str, Tensor],
        edges: Mapping[EdgeType, Tensor],
        means: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """Logits of the classified label's nodes; a channel without edges may be left out.

        ``means``: from `first_means` of the same ``x`` and ``edges``; without, they are computed.
        """
        rows = {place: x[label] for place, label in enumerate(self.schema.labels) if label in x}
        for number, layer in enumerate(self.layers):
            rows = layer(rows, edges, means if number == 0 else None)
            if number + 1 < len(self.layers):
                rows = {
                    place: functional.dropout(output.relu(), self.dropout, self.training)
                    for place, output in rows.items()
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
        heard = [
            (c, channel) for c, channel in enumerate(schema.channels) if channel.target in labels
        ]
        self.channels = torch.nn.ModuleDict(
            {
                str(c): torch.nn.Linear(widths[relation.source], out, bias=False)
                for c, relation in heard
            }
        )
        self.degrees = torch.nn.ModuleDict(
            {str(c): torch.nn.Linear(1, out, bias=False) for c, _ in heard} if degrees else {}
        )

    def forward(
        self,
        rows: Mapping[int, Tensor],
        edges: Mapping[EdgeType, Tensor],
        means: Mapping[str, Tensor] | None = None,
    ) -> dict[int, Tensor]:
        """Rows of the labels that this layer computes."""
        out = {int(label): root(rows[int(label)]) for label, root in self.roots.items()}
        for place, module in self.channels.items():
            if not self.has(place, edges):
                continue
            weights = cast(torch.nn.Linear, module)
            target = self.schema.channels[int(place)].target
            if means is not None:
                told = weights(means[place])
            elif weights.out_features < weights.in_features:  # fewer numbers along every edge
                told = self.mean(place, rows, edges, weights)
            else:
                told = weights(self.mean(place, rows, edges))
            out[target] = out[target] + told
            if place in self.degrees:
                count = self._counts(place, edges, len(out[target]), told.dtype)
                out[target] = out[target] + self.degrees[place](torch.log1p(count).unsqueeze(1))
        return out

    def has(self, place: str, edges: Mapping[EdgeType, Tensor]) -> bool:
        """Whether a channel has edges."""
        name = self.schema.edge_types[int(place)]
        return name in edges and bool(edges[name].size(1))

    def mean(
        self,
        place: str,
        rows: Mapping[int, Tensor],
        edges: Mapping[EdgeType, Tensor],
        weights: torch.nn.Module | None = None,
    ) -> Tensor:
        """Means of the sources by receiver through one channel; of their products with weights."""
        channel = self.schema.channels[int(place)]
        source, target = edges[self.schema.edge_types[int(place)]]
        values = rows[channel.source] if weights is None else weights(rows[channel.source])
        n = len(rows[channel.target])
        total = values.new_zeros(n, values.size(1)).index_add(0, target, values[source])
        count = self._counts(place, edges, n, values.dtype)
        return total * count.clamp(min=1).reciprocal().unsqueeze(1)

    def _counts(
        self, place: str, edges: Mapping[EdgeType, Tensor], n: int, kind: torch.dtype
    ) -> Tensor:
        """How many sources each receiver has through a channel [n]."""
        target = edges[self.schema.edge_types[int(place)]][1]
        return torch.bincount(target, minlength=n).to(kind)
