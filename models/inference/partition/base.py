"""The interface between a partition and its host, the same for every family of networks.

A layer is computed in three calls: `needs` says which rows of others it reads, their owners `give`
what the layer reads of them, and `compute` computes it at the requested rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED

__all__ = ["Allocate", "Part", "PartUpdate"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Plan = TypeVar("Plan")

Allocate = Callable[[str, tuple[int, ...], type[np.generic]], NDArray[Any]]
"""Returns the array of a name with so many rows; rows that existed before keep their values."""


@dataclass(frozen=True, slots=True)
class PartUpdate:
    """What changed at rows of one partition, all by their numbers in the whole graph.

    owners int16: the owners of nodes that joined the graph since `nodes` of them were known · rows
    int64, ascending, with offsets [rows + 1]: rows whose lists are new or other than before.
    """

    version: int
    nodes: int
    owners: NDArray[np.int16]
    rows: Ints
    offsets: Ints

    @property
    def bytes(self) -> int:
        """How much of it goes to the partition."""
        return sum(_count_bytes(getattr(self, column.name)) for column in fields(self))


@dataclass(slots=True)
class Part(ABC, Generic[Plan]):
    """The rows that one partition owns, and its share of each layer.

    rows int64 [m]: owned rows, ascending by their number in the whole graph; new ones are the
    highest · owners int16 [n]: the partition that owns each row of the graph · version: of the
    graph that the partition was last updated to · halo int64: rows of others that the current layer
    reads.
    """

    number: int
    plan: Plan
    allocate: Allocate
    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    owners: NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))
    version: int = NEVER_COMPUTED
    halo: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @abstractmethod
    def update(self, update: Any) -> None:
        """Apply changes."""

    @abstractmethod
    def needs(self, layer: int, rows: Ints | None = None, newest: Ints | None = None) -> None:
        """Choose the owned rows at which a layer is computed, and find its halo.

        rows: ascending; None: all owned rows. newest: the version at which an input of each row
        last changed; a part that keeps a layer's rows leaves out those computed since then.
        """

    @abstractmethod
    def give(self, layer: int, rows: Ints) -> Any:
        """Return what a layer of another partition reads of some owned rows."""

    @abstractmethod
    def compute(self, layer: int, given: Sequence[Any], pool: Pool) -> int:
        """Compute a layer at the chosen rows; return how many.

        given: by owner, what it gave of its rows of the halo; None if the halo has none of them.
        """

    @abstractmethod
    def outputs(self, rows: Ints) -> Float32s:
        """Return the outputs at some owned rows [m, classes], which the last layer has computed."""

    @abstractmethod
    def forget_pass(self) -> None:
        """Drop what only the current pass needs."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that the next pass reads, by the names that it has in the cache."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]], version: int) -> None:
        """Go on with the arrays of an earlier pass, which was over a graph of this version."""

    def join(self, update: PartUpdate) -> None:
        """Add the nodes that joined the graph; some of them are owned here."""
        if update.nodes != len(self.owners):
            raise ValueError(f"{len(self.owners)} nodes are known here, not {update.nodes}")
        self.owners = np.concatenate([self.owners, update.owners])
        joined = np.flatnonzero(update.owners == self.number) + update.nodes
        self.rows = np.concatenate([self.rows, joined])

    def places_of(self, rows: Ints) -> Ints:
        """Where rows of the whole graph stand among the owned ones; all must be owned."""
        places = np.searchsorted(self.rows, rows)
        if len(rows) and not (
            places[-1] < len(self.rows) and np.array_equal(self.rows[places], rows)
        ):
            raise ValueError(f"partition {self.number} does not own all of these rows")
        return places

    def halo_places(self, parts: int) -> list[Ints]:
        """By owner, where its rows stand in the halo."""
        by = self.owners[self.halo]
        return [np.flatnonzero(by == owner) for owner in range(parts)]


def _count_bytes(value: Any) -> int:
    """Bytes of an array, or of all arrays in a tuple or a mapping."""
    if isinstance(value, Mapping):
        return _count_bytes(tuple(value.values()))
    if isinstance(value, tuple):
        return sum(_count_bytes(part) for part in value)
    return int(getattr(value, "nbytes", 0))
