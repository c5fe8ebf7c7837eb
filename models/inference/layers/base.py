"""What an inference layer is: a network's weights laid out for its kernels, and its two layers.

Two tables are kept per node. ``first`` holds what a node sends to its neighbours (its transformed
features); ``second`` holds the hidden layer, already multiplied by the second layer's weights. A
subclass says how the second table is made from the first, and the outputs from the second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.arrays import as_array
from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.kernels import transform as kernels
from ringfence.models.inference.pool import Pool

if TYPE_CHECKING:
    from ringfence.models.inference.state import Tables

__all__ = ["InferencePlan", "MessagePlan", "weight_array"]

Float32s = NDArray[np.float32]

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
    #: Options of the network's constructor that are fields here, since no weight shows them.
    option_names: ClassVar[tuple[str, ...]] = ()

    mean: Float32s
    spread: Float32s
    into: Float32s
    bias: Float32s
    onward: Float32s
    out_bias: Float32s

    @classmethod
    def of(
        cls, weights: Mapping[str, Any], mean: Any, spread: Any, options: Mapping[str, Any]
    ) -> Self:
        """Return the plan of trained weights by name; other options than this class's are left."""
        chosen = {name: options[name] for name in cls.option_names if name in options}
        arrays = {name: weight_array(value) for name, value in weights.items()}
        scaling = {"mean": weight_array(mean), "spread": weight_array(spread)}
        return cls(**scaling, **cls.layout(arrays), **chosen)

    @staticmethod
    @abstractmethod
    def layout(weights: Mapping[str, Float32s]) -> dict[str, Any]:
        """Return the network's weights by the names of this class's fields."""

    @abstractmethod
    def second_rows(self, near: InNeighbours, features: Any, tables: Tables, pool: Pool) -> None:
        """Compute the first layer at `near.rows` and put it, times `onward`, into `second`."""

    @abstractmethod
    def outputs(
        self, near: InNeighbours, scale: Float32s, second: Float32s, pool: Pool
    ) -> Float32s:
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
    def steps(self) -> int:
        """How many times the second layer is computed: one after another if it walks."""
        return 1

    @property
    def reach(self) -> str:
        """Why every pass is a full one, if a change reaches all nodes."""
        return ""

    def transform(self, features: Float32s, weights: Float32s) -> Float32s:
        """Return ((features - mean) / spread) . weights [n, k]."""
        given = np.ascontiguousarray(features, np.float32)
        out = np.empty((len(given), weights.shape[1]), np.float32)
        kernels.standardise_and_multiply(0, len(given), given, self.mean, self.spread, weights, out)
        return out

    def first(self, features: Float32s) -> Float32s:
        """Return the rows of the first table for nodes with these features [n, first width]."""
        return self.transform(features, self.into)

    def second(self, near: InNeighbours, features: Any, tables: Tables, pool: Pool) -> None:
        """Compute the first layer at `near.rows`, so many at a time that scratch stays small."""
        for at in range(0, len(near.rows), HIDDEN_ROWS):
            rows = near.rows[at : at + HIDDEN_ROWS]
            offsets = near.offsets[at : at + len(rows) + 1]
            self.second_rows(InNeighbours(rows, offsets, near.sources), features, tables, pool)


@dataclass(frozen=True, slots=True)
class MessagePlan(InferencePlan):
    """A plan whose first table holds messages on a grid, so that sums of them are exact.

    A changed message can then be exchanged in a sum that is kept (see `messages`).
    """

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
        """Which rows hold a message too large for an exact sum [n]."""
        return np.asarray(~(np.abs(messages).max(axis=1, initial=0) <= self.exact_range))


def weight_array(value: Any) -> Float32s:
    """Return weights as a contiguous float32 array.

    >>> weight_array(np.array([[1.0, 2.0], [3.0, 4.0]]).T).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    return np.ascontiguousarray(as_array(value), np.float32)
