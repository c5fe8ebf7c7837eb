"""The properties of one label's nodes: what every kind of table can do, and the kind "vector".

A table writes the properties of a block, gives them back by record, and writes the records of some
rows anew when a mirror is compacted. The mirror's manifest names the kind of each table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.blocks import AnyBlock, NodeBlock, Picked
from ringfence.connector.mirror.columns import Column

Ints = NDArray[np.int64]
ROWS_PER_STEP = 1 << 18  # scratch memory stays small


class TableFacts(TypedDict):
    """What a manifest says of a table: its kind, and the width or the names that the kind has."""

    kind: str
    width: NotRequired[int]
    names: NotRequired[list[str]]


class Table(ABC):
    """Records of one label's nodes; `names` are the properties that a record holds."""

    kind: ClassVar[str]
    width: int = 0  # numbers per node, where a network takes them as they are
    names: tuple[str, ...] = ()

    @classmethod
    @abstractmethod
    def restore(cls, facts: TableFacts, files: dict[str, Column]) -> Table:
        """Return the table that `facts` and `files` of a manifest describe."""

    @abstractmethod
    def __len__(self) -> int:
        """How many records there are, those that no node has any more included."""

    @property
    @abstractmethod
    def mean_bytes(self) -> float:
        """Mean length of a record."""

    @abstractmethod
    def append(self, block: AnyBlock, picked: Picked) -> Ints:
        """Write the records of some nodes of a block and return their places.

        Nothing is returned where a record stands at its node's row, and no place is kept.
        """

    @abstractmethod
    def features(self, rows: int) -> NDArray[np.float32]:
        """Return the features of `rows` rows as a network takes them [rows, width], mapped."""

    @abstractmethod
    def take(self, rows: Ints) -> NDArray[np.float32]:
        """Return a copy of the features of some rows [n, width]; no page stays in memory."""

    @abstractmethod
    def show(self, rows: Ints, features: NDArray[np.float32]) -> None:
        """Make `features` show other values at some rows; the files stay as they are."""

    @abstractmethod
    def columns(self, places: Ints) -> dict[str, list[Any]]:
        """Return the values of some records by column; None where a node has no value."""

    @abstractmethod
    def differ(self, places: Ints, other: Table, others: Ints) -> NDArray[np.bool_]:
        """Return which records [n] are not equal to those of another table of the same kind."""

    @abstractmethod
    def differs(self, places: Ints, block: AnyBlock) -> NDArray[np.bool_]:
        """Return which records [n] are not equal to those of a block's nodes."""

    @abstractmethod
    def facts(self) -> TableFacts:
        """Return what a manifest says of the table, besides its files."""

    @abstractmethod
    def files(self) -> dict[str, Column]:
        """Return its columns, by names that are its own among all kinds."""

    @abstractmethod
    def rewrite(self, folder: Path, label: int, places: Ints) -> tuple[Table, Ints]:
        """Return a table in `folder` of these records alone, in this order, and their places."""


class VectorTable(Table):
    """A list of numbers per node, float32 [n, width]: record i belongs to row i.

    It is the table of a graph with one label. A network takes it as it is.
    """

    kind = "vector"
    names = ("features",)

    def __init__(self, column: Column) -> None:
        self.column = column
        self.width = column.width or 0

    @classmethod
    def empty(cls, folder: Path, width: int) -> VectorTable:
        """Return a table without records."""
        return cls(Column(folder / "features", np.float32, width))

    @classmethod
    def restore(cls, facts: TableFacts, files: dict[str, Column]) -> VectorTable:
        """Return the table of a manifest."""
        return cls(files["features"])

    def __len__(self) -> int:
        return self.column.rows

    @property
    def mean_bytes(self) -> float:
        """Bytes of a row."""
        return float(self.column.row_bytes)

    def append(self, block: AnyBlock, picked: Picked) -> Ints:
        """Write the features of some nodes of a block; their places are their rows."""
        self.column.append(_features_of(block)[picked])
        return np.empty(0, np.int64)

    def features(self, rows: int) -> NDArray[np.float32]:
        """Return all features; there is a record for each row."""
        return self.column.array

    def take(self, rows: Ints) -> NDArray[np.float32]:
        """Return a copy of the features of some rows."""
        return self.column.take(rows)

    def show(self, rows: Ints, features: NDArray[np.float32]) -> None:
        """Let the column show other features at some rows."""
        self.column.show(rows, features)

    def columns(self, places: Ints) -> dict[str, list[Any]]:
        """Return the one column, by the name "features"."""
        return {"features": self.take(places).tolist()}

    def differ(self, places: Ints, other: Table, others: Ints) -> NDArray[np.bool_]:
        """Return where any number differs."""
        mine, theirs = self.features(len(self)), other.features(len(other))
        return np.asarray((mine[places] != theirs[others]).any(axis=1))

    def differs(self, places: Ints, block: AnyBlock) -> NDArray[np.bool_]:
        """Return where any number differs."""
        features = _features_of(block)
        return np.asarray((self.column.array[places] != features).any(axis=1))

    def facts(self) -> TableFacts:
        """Return the kind and the width."""
        return {"kind": self.kind, "width": self.width}

    def files(self) -> dict[str, Column]:
        """Return the one column."""
        return {"features": self.column}

    def rewrite(self, folder: Path, label: int, places: Ints) -> tuple[Table, Ints]:
        """Write the features as they are shown now, with all patches."""
        fresh = VectorTable.empty(folder, self.width)
        for start, stop in steps(len(places)):
            fresh.column.append(self.column.array[places[start:stop]])
        return fresh, np.empty(0, np.int64)


def _features_of(block: AnyBlock) -> NDArray[np.float32]:
    if not isinstance(block, NodeBlock):
        raise TypeError("a table of vectors takes features, not raw columns")
    return block.features


def steps(rows: int) -> Iterator[tuple[int, int]]:
    """Yield bounds of parts of so many rows.

    >>> list(steps(3))
    [(0, 3)]
    """
    for start in range(0, rows, ROWS_PER_STEP):
        yield start, min(start + ROWS_PER_STEP, rows)
