"""A network's weights laid out for the kernels, and how its two layers run over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.models.incremental import _layer_kernels as kernels
from ringfence.models.incremental._message_kernels import gcn_first
from ringfence.models.incremental.incidence import Heard
from ringfence.models.incremental.pool import Pool
from ringfence.models.networks import APPNP, GAT, GCN, MLP, SAGE

if TYPE_CHECKING:
    from ringfence.models.incremental.tables import Tables

__all__ = ["Plan", "plan_of"]

Floats = NDArray[np.float32]
Kind = Literal["gcn", "sage", "gat", "mlp", "appnp"]

#: Rows per matrix product. Always whole blocks, the last one padded: so a row's result has the
#: same bits whether it is computed alone or among a million.
BLOCK = 512
#: Rows of the hidden layer in flight at a time.
PORTION = 16_384


@dataclass(frozen=True, slots=True)
class Plan:
    """One network ready for the kernels.

    scale: (mean, spread) of the features. into [d, first width]: the first layer's transformation.
    own [d, hidden]: SAGE's weights of a node's own features. bias, out_bias: of the two layers.
    onward [hidden, second width]: what the hidden layer is multiplied by.
    """

    kind: Kind
    mean: Floats
    spread: Floats
    into: Floats
    own: Floats | None
    bias: Floats
    onward: Floats
    out_bias: Floats
    heads: int = 1
    steps: int = 0
    teleport: float = 0.0

    @property
    def first_width(self) -> int:
        """Columns kept per node of the transformed features; 0 where messages carry none."""
        return 0 if self.kind in {"mlp", "appnp"} else int(self.into.shape[1])

    @property
    def second_width(self) -> int:
        """Columns kept per node of the first layer's results."""
        return int(self.onward.shape[1])

    @property
    def classes(self) -> int:
        """Number of outputs."""
        return len(self.out_bias)

    @property
    def has_messages(self) -> bool:
        """Whether the first table holds messages on a grid: GCN's do."""
        return self.kind == "gcn"

    @property
    def grid(self) -> float:
        """What messages are multiples of, a power of two: 2^-29 of their usual size.

        Given by the weights alone, for standardised features: whatever the history of a graph, its
        messages have the same bits.
        """
        usual = float(np.sqrt((self.into.astype(np.float64) ** 2).sum(axis=0).max(initial=0.0)))
        return 2.0 ** (int(np.ceil(np.log2(usual))) - 29 if usual > 0 else 0)

    @property
    def magic(self) -> float:
        """Adding it to a float64 rounds to the grid."""
        return 1.5 * 2.0**52 * self.grid

    @property
    def loud(self) -> float:
        """Sums of up to 2^20 messages not above this have all their digits in a float64."""
        return 2.0**33 * self.grid

    @property
    def degrees_matter(self) -> bool:
        """Whether a neighbour's degree scales its messages, as in GCN's normalisation."""
        return self.kind in {"gcn", "appnp"}

    @property
    def reaches_everyone(self) -> bool:
        """Whether a change anywhere may change any output: APPNP walks ten steps."""
        return self.kind == "appnp"

    def transform(self, features: Floats, weights: Floats) -> Floats:
        """Return ((features - mean) / spread) . weights, block by block [n, k]."""
        out = np.empty((len(features), weights.shape[1]), np.float32)
        block = torch.zeros((BLOCK, features.shape[1]))
        mean, spread = torch.from_numpy(self.mean), torch.from_numpy(self.spread)
        into, flat = torch.from_numpy(weights), torch.from_numpy(out)
        with torch.inference_mode():
            for at in range(0, len(features), BLOCK):
                part = torch.from_numpy(np.ascontiguousarray(features[at : at + BLOCK]))
                block[: len(part)] = (part - mean) / spread
                flat[at : at + BLOCK] = (block @ into)[: len(part)]
        return out

    def first(self, features: Floats) -> Floats:
        """Return the rows of the first table for nodes with these features."""
        return self.transform(features, self.into)

    def is_loud(self, messages: Floats) -> NDArray[np.bool_]:
        """Which rows hold a message that no kept sum may take [n]."""
        return np.asarray(~(np.abs(messages).max(axis=1, initial=0) <= self.loud))

    def second(self, known: Heard, features: Any, tables: Tables, pool: Pool) -> None:
        """Compute the first layer at `known.rows` and put it, multiplied onward, into `second`."""
        first, second = tables.first, tables.second
        for at in range(0, len(known.rows), PORTION):
            rows = known.rows[at : at + PORTION]
            offsets = known.offsets[at : at + len(rows) + 1]
            near = (rows, offsets, known.sources)
            if self.kind == "gcn":
                sums = (tables.slots, tables.sums, self.loud)
                out = (self.bias, self.onward, second)
                pool(gcn_first, offsets, *near, tables.scale, first, *out, *sums)
            elif self.kind == "sage" and self.own is not None:
                own = self.transform(features[rows], self.own)
                pool(kernels.sage_first, offsets, *near, first, own, self.bias, self.onward, second)
            elif self.kind == "gat":
                hidden = np.empty((len(rows), len(self.bias)), np.float32)
                heads = (len(self.bias), self.heads, self.bias, hidden)
                pool(kernels.gat_layer, offsets, *near, first, *heads)
                pool(kernels.gat_project, offsets, rows, hidden, self.onward, second)
            else:
                hidden = self.transform(features[rows], self.into) + self.bias
                np.maximum(hidden, 0, out=hidden)
                second[rows] = blocks_of(hidden, self.onward) + self.out_bias

    def outputs(self, known: Heard, scale: Floats, second: Floats, pool: Pool) -> Floats:
        """Return the second layer at `known.rows`, [rows, classes]."""
        near = (known.rows, known.offsets, known.sources)
        out = np.empty((len(known.rows), self.classes), np.float32)
        if self.kind == "gcn":
            pool(kernels.gcn_second, known.offsets, *near, scale, second, self.out_bias, out)
        elif self.kind == "sage":
            pool(kernels.sage_second, known.offsets, *near, second, self.out_bias, out)
        elif self.kind == "gat":
            one = (self.classes, 1, self.out_bias, out)
            pool(kernels.gat_layer, known.offsets, *near, second, *one)
        else:
            out[:] = second[known.rows]
        return out

    def walked(self, known: Heard, scale: Floats, origin: Floats, pool: Pool) -> Floats:
        """Return APPNP's outputs of all nodes [n, classes]: `steps` steps from `origin`."""
        before, after = origin.copy(), np.empty_like(origin)
        for _ in range(self.steps):
            pool(
                kernels.walk, known.offsets, known.offsets, known.sources, scale,
                self.teleport, origin, before, after,
            )  # fmt: skip
            before, after = after, before
        return before


def blocks_of(values: Floats, weights: Floats) -> Floats:
    """Return values . weights in blocks of one shape [n, k]."""
    out = np.empty((len(values), weights.shape[1]), np.float32)
    block = np.zeros((BLOCK, values.shape[1]), np.float32)
    for at in range(0, len(values), BLOCK):
        part = values[at : at + BLOCK]
        block[: len(part)] = part
        out[at : at + BLOCK] = (block @ weights)[: len(part)]
    return out


def plan_of(network: torch.nn.Module, mean: torch.Tensor, spread: torch.Tensor) -> Plan | None:
    """Return the plan of one of ringfence's networks; None for a user's own module.

    Args:
        network: trained, with float32 weights.
        mean: [d], taken off the features first.
        spread: [d], divides them then.
    """
    layout = _LAYOUTS.get(type(network))
    if layout is None:
        return None
    return Plan(mean=_array(mean), spread=_array(spread), **layout(network))


def _array(value: torch.Tensor) -> Floats:
    return np.ascontiguousarray(value.detach().to(torch.float32).numpy())


def _gcn(network: Any) -> dict[str, Any]:
    return {
        "kind": "gcn", "own": None,
        "into": _array(network.conv1.lin.weight.T), "bias": _array(network.conv1.bias),
        "onward": _array(network.conv2.lin.weight.T), "out_bias": _array(network.conv2.bias),
    }  # fmt: skip


def _sage(network: Any) -> dict[str, Any]:
    one, two = network.conv1, network.conv2
    return {
        "kind": "sage",
        "into": _array(one.lin_l.weight.T), "own": _array(one.lin_r.weight.T),
        "bias": _array(one.lin_l.bias), "out_bias": _array(two.lin_l.bias),
        "onward": _array(torch.cat([two.lin_l.weight.T, two.lin_r.weight.T], dim=1)),
    }  # fmt: skip


def _gat(network: Any) -> dict[str, Any]:
    one, two = network.conv1, network.conv2
    return {
        "kind": "gat", "own": None, "heads": int(one.heads),
        "into": _array(_with_energies(one)), "bias": _array(one.bias),
        "onward": _array(_with_energies(two)), "out_bias": _array(two.bias),
    }  # fmt: skip


def _with_energies(conv: Any) -> torch.Tensor:
    """Columns for the values, then W . att_src and W . att_dst of every head."""
    weights = conv.lin.weight.detach().T  # [d, heads * per]
    apart = weights.reshape(weights.size(0), conv.heads, -1)
    energies = [(apart * vector.detach()).sum(-1) for vector in (conv.att_src, conv.att_dst)]
    return torch.cat([weights, *energies], dim=1)


def _perceptron(network: Any, kind: Kind) -> dict[str, Any]:
    return {
        "kind": kind, "own": None,
        "into": _array(network.lin1.weight.T), "bias": _array(network.lin1.bias),
        "onward": _array(network.lin2.weight.T), "out_bias": _array(network.lin2.bias),
    }  # fmt: skip


def _mlp(network: Any) -> dict[str, Any]:
    return _perceptron(network, "mlp")


def _appnp(network: Any) -> dict[str, Any]:
    walk = {"steps": int(network.propagation.K), "teleport": float(network.propagation.alpha)}
    return {**_perceptron(network, "appnp"), **walk}


_LAYOUTS: dict[type[torch.nn.Module], Callable[[Any], dict[str, Any]]] = {
    GCN: _gcn,
    SAGE: _sage,
    GAT: _gat,
    MLP: _mlp,
    APPNP: _appnp,
}
