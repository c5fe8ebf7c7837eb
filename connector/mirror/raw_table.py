"""The raw columns of one label: one JSON text per node, in files that only ever grow.

A node whose properties changed gets a new record behind the last one; which record is a node's own
is known by its place. Records that no node has any more go at the next compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.blocks import AnyBlock, Picked, RawBlock
from ringfence.connector.mirror.columns import Column
from ringfence.connector.mirror.raw_values import decode_row, encode_row, plain_value
from ringfence.connector.mirror.table import Ints, Table, TableFacts, steps


class RawTable(Table):
    """Records by place: text uint8, and ends int64 [records]."""

    kind = "raw"

    def __init__(self, names: Sequence[str], text: Column, ends: Column) -> None:
        self.names = tuple(names)
        self.text = text
        self.ends = ends

    @classmethod
    def empty(cls, folder: Path, label: int, names: Sequence[str]) -> RawTable:
        """Return a table without records; `label` tells the files of labels apart."""
        return cls(
            names,
            Column(folder / f"raw.{label}.text", np.uint8),
            Column(folder / f"raw.{label}.ends", np.int64),
        )

    @classmethod
    def restore(cls, facts: TableFacts, files: dict[str, Column]) -> RawTable:
        """Return the table of a manifest."""
        return cls(facts["names"], files["text"], files["ends"])

    def __len__(self) -> int:
        return self.ends.rows

    @property
    def mean_bytes(self) -> float:
        """Mean length of a record."""
        return self.text.rows / max(len(self), 1)

    def append(self, block: AnyBlock, picked: Picked) -> Ints:
        """Write the raw columns of some nodes of a block and return the places of the records."""
        at = np.arange(len(block.keys))[picked].tolist()
        columns = [[column[place] for place in at] for column in _columns_of(block)]
        return self.append_texts(encode_columns(columns, len(at)))

    def append_changed(
        self, places: Ints, block: RawBlock, nodes: Ints
    ) -> tuple[NDArray[np.bool_], Ints]:
        """Write records of some nodes of a block whose text is not the one at their places.

        Return which of them these were, and their new places.
        """
        texts = encode_columns(block.columns, len(block.keys))
        texts = [texts[node] for node in nodes.tolist()]
        pairs = list(zip(self.texts(places), texts, strict=True))
        changed = np.array([old != new for old, new in pairs], np.bool_)
        return changed, self.append_texts([new for old, new in pairs if old != new])

    def append_texts(self, texts: Sequence[bytes]) -> Ints:
        """Write records, as `encode_columns` gives them, and return their places."""
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts))) + self.text.rows
        self.text.append(np.frombuffer(b"".join(texts), np.uint8))
        self.ends.append(ends)
        return np.arange(len(self) - len(texts), len(self))

    def texts(self, places: Ints) -> list[bytes]:
        """Return records as they are stored."""
        ends, text = self.ends.array, self.text.array
        starts = np.where(places > 0, ends[places - 1], 0)
        pairs = zip(starts.tolist(), ends[places].tolist(), strict=True)
        return [text[start:stop].tobytes() for start, stop in pairs]

    def columns(self, places: Ints) -> dict[str, list[Any]]:
        """Return the values of some records by column; None where a node has no value."""
        rows = [decode_row(text) for text in self.texts(places)]
        return {name: [row[at] for row in rows] for at, name in enumerate(self.names)}

    def features(self, rows: int) -> NDArray[np.float32]:
        """Return no numbers: a model's encoders make them."""
        return np.empty((rows, 0), np.float32)

    def take(self, rows: Ints) -> NDArray[np.float32]:
        """Return no numbers, likewise."""
        return self.features(len(rows))

    def show(self, rows: Ints, features: NDArray[np.float32]) -> None:
        """Show nothing: other properties are records of their own."""

    def differ(self, places: Ints, other: Table, others: Ints) -> NDArray[np.bool_]:
        """Return where the texts differ."""
        if not isinstance(other, RawTable):
            raise TypeError("tables of two kinds have no records to compare")
        pairs = zip(self.texts(places), other.texts(others), strict=True)
        return np.fromiter((mine != theirs for mine, theirs in pairs), np.bool_, len(places))

    def differs(self, places: Ints, block: AnyBlock) -> NDArray[np.bool_]:
        """Return where the texts differ."""
        texts = encode_columns(_columns_of(block), len(block.keys))
        pairs = zip(self.texts(places), texts, strict=True)
        return np.fromiter((mine != theirs for mine, theirs in pairs), np.bool_, len(places))

    def facts(self) -> TableFacts:
        """Return the kind and the names of the columns."""
        return {"kind": self.kind, "names": list(self.names)}

    def files(self) -> dict[str, Column]:
        """Return the texts and where they end."""
        return {"text": self.text, "ends": self.ends}

    def rewrite(self, folder: Path, label: int, places: Ints) -> tuple[Table, Ints]:
        """Copy the texts of these records, some at a time."""
        fresh = RawTable.empty(folder, label, self.names)
        for start, stop in steps(len(places)):
            fresh.append_texts(self.texts(places[start:stop]))
        return fresh, np.arange(len(places))


def _columns_of(block: AnyBlock) -> list[list[Any]]:
    if not isinstance(block, RawBlock):
        raise TypeError("a table of raw columns takes columns, not features")
    return block.columns


def encode_columns(columns: Sequence[Sequence[Any]], rows: int) -> list[bytes]:
    """Return one record per row from columns of `rows` values each.

    >>> encode_columns([[1, None], ["a", "b"]], 2)
    [b'[1,"a"]', b'[null,"b"]']
    """
    values = zip(*columns, strict=True) if columns else ((),) * rows
    return [encode_row([plain_value(value) for value in row]).encode() for row in values]
