"""What an inference layer is: a network's weights laid out for its kernels, and its two layers.

Two tables are kept per node. ``first`` holds what a node sends to its neighbours (its transformed
features); ``second`` holds the hidden layer, already multiplied by the second layer's weights. A
subclass says how the second table is made from the first, and the outputs from the second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.models.inference.graph import Incoming
from ringfence.models.inference.pool import Pool

if TYPE_CHECKING:
    from ringfence.models.inference.state import Tables

__all__ = ["InferencePlan", "MessagePlan", "multiply_in_blocks", "weight_array"]

Float32s = NDArray[np.float32]

#: Rows per matrix product. Always whole blocks, the last one padded: so a row's result has the
#: same bits whether it is computed alone or among a million.
BLOCK_ROWS = 512
#: Rows of the hidden layer in flight at a time.
HIDDEN_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class InferencePlan(ABC):
    """One network ready for its kernels; a subclass per network, in a file of its own.

    mean, spread [d]: of the features. into [d, first width]: the first layer's transformation.
    bias [hidden], out_bias [classes]: of the two layers. onward [hidden, second width]: what the
    hidden layer is multiplied by.
    """

    #: Whether the first layer gathers transformed features of neighbours: then they are kept.
    gathers_features: ClassVar[bool] = True
    #: Whether a neighbour's degree scales its messages, as in GCN's normalisation.
    degrees_matter: ClassVar[bool] = False
    #: Whether a change anywhere may change any output: then every pass has outputs of all nodes.
    reaches_everyone: ClassVar[bool] = False

    mean: Float32s
    spread: Float32s
    into: Float32s
    bias: Float32s
    onward: Float32s
    out_bias: Float32s

    @classmethod
    def of(cls, network: torch.nn.Module, mean: torch.Tensor, spread: torch.Tensor) -> Self:
        """Return the plan of a trained network with float32 weights."""
        return cls(mean=weight_array(mean), spread=weight_array(spread), **cls.layout(network))

    @staticmethod
    @abstractmethod
    def layout(network: Any) -> dict[str, Any]:
        """Return the network's weights by the names of this class's fields."""

    @abstractmethod
    def second_rows(self, near: Incoming, features: Any, tables: Tables, pool: Pool) -> None:
        """Compute the first layer at `near.rows` and put it, times `onward`, into `second`."""

    @abstractmethod
    def outputs(self, near: Incoming, scale: Float32s, second: Float32s, pool: Pool) -> Float32s:
        """Return the second layer at `near.rows`, [rows, classes]; all rows if one reaches all."""

    @property
    def first_width(self) -> int:
        """Columns kept per node of the transformed features; 0 where messages carry none."""
        return int(self.into.shape[1]) if self.gathers_features else 0

    @property
    def second_width(self) -> int:
        """Columns kept per node of the first layer's results."""
        return int(self.onward.shape[1])

    @property
    def classes(self) -> int:
        """Number of outputs."""
        return len(self.out_bias)

    @property
    def reach(self) -> str:
        """Why every pass is a full one, where a change reaches everyone."""
        return ""

    def transform(self, features: Float32s, weights: Float32s) -> Float32s:
        """Return ((features - mean) / spread) . weights, block by block [n, k]."""
        out = np.empty((len(features), weights.shape[1]), np.float32)
        block = torch.zeros((BLOCK_ROWS, features.shape[1]))
        mean, spread = torch.from_numpy(self.mean), torch.from_numpy(self.spread)
        into, flat = torch.from_numpy(weights), torch.from_numpy(out)
        with torch.inference_mode():
            for at in range(0, len(features), BLOCK_ROWS):
                part = torch.from_numpy(np.ascontiguousarray(features[at : at + BLOCK_ROWS]))
                block[: len(part)] = (part - mean) / spread
                flat[at : at + BLOCK_ROWS] = (block @ into)[: len(part)]
        return out

    def first(self, features: Float32s) -> Float32s:
        """Return the rows of the first table for nodes with these features [n, first width]."""
        return self.transform(features, self.into)

    def second(self, near: Incoming, features: Any, tables: Tables, pool: Pool) -> None:
        """Compute the first layer at `near.rows`, so many at a time that scratch stays small."""
        for at in range(0, len(near.rows), HIDDEN_ROWS):
            rows = near.rows[at : at + HIDDEN_ROWS]
            offsets = near.offsets[at : at + len(rows) + 1]
            self.second_rows(Incoming(rows, offsets, near.sources), features, tables, pool)


@dataclass(frozen=True, slots=True)
class MessagePlan(InferencePlan):
    """A plan whose first table holds messages on a grid, so that sums of them are exact.

    A changed message can then be exchanged in a sum that is kept (see `messages`).
    """

    @abstractmethod
    def second_from_sums(self, rows: NDArray[np.int64], tables: Tables, pool: Pool) -> None:
        """Make `rows` of the second table from the sums that are kept in their slots."""

    @property
    def grid(self) -> float:
        """What messages are multiples of, a power of two: 2^-29 of their usual size.

        Given by the weights alone, for standardised features: whatever the history of a graph, its
        messages have the same bits.
        """
        usual = float(np.sqrt((self.into.astype(np.float64) ** 2).sum(axis=0).max(initial=0.0)))
        return 2.0 ** (int(np.ceil(np.log2(usual))) - 29 if usual > 0 else 0)

    @property
    def rounding_term(self) -> float:
        """Adding it to a float64, and taking it off again, rounds to the grid."""
        return 1.5 * 2.0**52 * self.grid

    @property
    def exact_range(self) -> float:
        """Sums of up to 2^20 messages not above this have all their digits in a float64."""
        return 2.0**33 * self.grid

    def exceeds_exact_range(self, messages: Float32s) -> NDArray[np.bool_]:
        """Which rows hold a message that no kept sum may take [n]."""
        return np.asarray(~(np.abs(messages).max(axis=1, initial=0) <= self.exact_range))


def multiply_in_blocks(values: Float32s, weights: Float32s) -> Float32s:
    """Return values . weights in blocks of one shape [n, k]."""
    out = np.empty((len(values), weights.shape[1]), np.float32)
    block = np.zeros((BLOCK_ROWS, values.shape[1]), np.float32)
    for at in range(0, len(values), BLOCK_ROWS):
        part = values[at : at + BLOCK_ROWS]
        block[: len(part)] = part
        out[at : at + BLOCK_ROWS] = (block @ weights)[: len(part)]
    return out


def weight_array(value: torch.Tensor) -> Float32s:
    """Return a tensor as a contiguous float32 array.

    >>> weight_array(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    return np.ascontiguousarray(value.detach().to(torch.float32).numpy())
