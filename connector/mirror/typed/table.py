"""The raw columns of one label: one JSON text per node, in files that only ever grow.

A node whose properties changed gets a new record behind the last one; which record is a node's own
is known by its place. Records that no node has any more go when the graph is read whole again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.columns import Column
from ringfence.connector.mirror.typed.values import decode_row, encode_row, plain_value

Ints = NDArray[np.int64]


class RawTable:
    """Records by place: text uint8, and ends int64 [records]."""

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

    def __len__(self) -> int:
        return self.ends.rows

    @property
    def mean_bytes(self) -> float:
        """Mean length of a record."""
        return self.text.rows / max(len(self), 1)

    def append(self, texts: Sequence[bytes]) -> Ints:
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


def encode_columns(columns: Sequence[Sequence[Any]], rows: int) -> list[bytes]:
    """Return one record per row from columns of `rows` values each.

    >>> encode_columns([[1, None], ["a", "b"]], 2)
    [b'[1,"a"]', b'[null,"b"]']
    """
    values = zip(*columns, strict=True) if columns else ((),) * rows
    return [encode_row([plain_value(value) for value in row]).encode() for row in values]
