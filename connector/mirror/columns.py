"""Columns in files: appended to, mapped into memory, and checked by a running checksum."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import open_private

CHECKSUM_CHUNK_BYTES = 1 << 24


class TornColumn(Exception):
    """A file is shorter than it was, or its checksum differs."""


class ColumnFacts(TypedDict):
    """What a manifest says of a column: its file, the shape and type of its rows, a checksum.

    `seal` has inode, size and time of change of the file.
    """

    name: str
    kind: str
    width: int | None
    rows: int
    checksum: int
    seal: list[int]


class Column:
    """Rows of numbers in a file that only ever grows.

    Data beyond `rows` was written by a run that died before it saved the mirror, and is
    overwritten. The array is mapped copy-on-write: reading it costs no memory that the system
    couldn't take back, and nothing that is done to it reaches the file.
    """

    def __init__(
        self, path: Path, kind: Any, width: int | None = None, rows: int = 0, checksum: int = 0
    ) -> None:
        self.path = path
        self.kind = np.dtype(kind)
        self.width = width
        self.rows = rows
        self.checksum = checksum
        self.is_pinned = False
        self._mapped: NDArray[Any] | None = None
        self._other: list[tuple[NDArray[np.int64], NDArray[Any]]] = []

    @property
    def row_bytes(self) -> int:
        """Bytes per row."""
        return int(self.kind.itemsize) * (1 if self.width is None else self.width)

    @property
    def array(self) -> NDArray[Any]:
        """All rows, [rows] or [rows, width]."""
        if self._mapped is None:
            self._mapped = self._map()
        return self._mapped

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a copy of some rows; pages that were read for it don't stay in this process.

        Where other values are shown, the mapped array answers, which has them; likewise where the
        file may be gone.
        """
        if self.is_pinned or self._other or not len(rows) or not self.rows or self.width == 0:
            return np.asarray(self.array[rows])
        return np.asarray(self._map()[rows])

    def pin(self) -> None:
        """Map the file now: the array stays readable when the file is removed or added to."""
        self._mapped = self._map()
        self.is_pinned = True

    def release(self) -> None:
        """Release mapped pages; the next access reads them from the system's cache or the disk.

        Values that are shown live in such pages: a column that has some keeps them all.
        """
        if self._mapped is None or self._other:
            return
        base: Any = self._mapped
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)

    def show(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Let the array have other values at some rows; the file stays as it is."""
        self._other.append((rows, values))
        if self._mapped is not None:
            self._mapped[rows] = values

    def append(self, values: NDArray[Any]) -> None:
        """Write rows behind the last one."""
        if not len(values):
            return
        if self.is_pinned:
            raise ValueError(f"{self.path.name} is open for reading alone")
        raw = np.ascontiguousarray(values, self.kind).reshape(-1).view(np.uint8).data
        mode = "r+b" if self.path.exists() else "w+b"
        with open_private(self.path, mode) as file:
            file.seek(self.rows * self.row_bytes)
            file.write(raw)
        self.rows += len(values)
        self.checksum = zlib.crc32(raw, self.checksum)
        self._mapped = None

    def sync(self) -> None:
        """Wait until the disk has it."""
        if self.rows:
            with self.path.open("r+b") as file:
                file.truncate(self.rows * self.row_bytes)
                os.fsync(file.fileno())

    def facts(self) -> ColumnFacts:
        """What a manifest keeps; call it after `sync`."""
        return {
            "name": self.path.name, "kind": self.kind.str, "width": self.width,
            "rows": self.rows, "checksum": self.checksum, "seal": _seal(self.path),
        }  # fmt: skip

    def check(self, seal: list[int] | None) -> None:
        """Raise TornColumn unless the file still holds the rows that the manifest describes.

        An untouched file (same inode, size and time of change, `seal`) is trusted: reading it all
        at every start would cost as much as the graph is large.
        """
        if not self.rows or (seal is not None and _seal(self.path) == seal):
            return
        left, checksum = self.rows * self.row_bytes, 0
        try:
            with self.path.open("rb") as file:
                while left and (chunk := file.read(min(CHECKSUM_CHUNK_BYTES, left))):
                    checksum = zlib.crc32(chunk, checksum)
                    left -= len(chunk)
        except OSError:
            raise TornColumn(self.path.name) from None
        if left or checksum != self.checksum:
            raise TornColumn(self.path.name)

    def _map(self) -> NDArray[Any]:
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        if 0 in shape:
            return np.empty(shape, self.kind)
        mapped = np.memmap(self.path, self.kind, mode="c", shape=shape).view(np.ndarray)
        for rows, values in self._other:
            mapped[rows] = values
        return mapped


def column_from(folder: Path, facts: ColumnFacts, trusted: bool) -> Column:
    """Return the column that `facts` describe, checked; not `trusted`: every byte is read."""
    column = Column(
        folder / facts["name"], facts["kind"], facts["width"], facts["rows"], facts["checksum"]
    )
    column.check(facts["seal"] if trusted else None)
    return column


def written(path: Path, values: NDArray[Any]) -> Column:
    """Return a new column that holds `values`."""
    path.unlink(missing_ok=True)
    column = Column(path, values.dtype, values.shape[1] if values.ndim == 2 else None)
    column.append(values)
    return column


def _seal(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:
        return []
    return [status.st_ino, status.st_size, status.st_mtime_ns]
