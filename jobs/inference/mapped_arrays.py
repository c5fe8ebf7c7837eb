"""Arrays in files that are mapped: what a cache or a partition has on its disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import PRIVATE, open_private

SPARE_SHARE = 8  # a file that grows gets room for an eighth more rows than it needs


class MappedArrays:
    """Arrays by name, each in a file of its own that only grows.

    read_only: what is written to an array stays in memory, and no file is made or made longer.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder, self.read_only = folder, read_only
        self._mapped: dict[str, NDArray[Any]] = {}
        self._files: dict[str, os.stat_result] = {}  # those that are mapped

    def __call__(self, name: str, shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
        """Return the first rows of an array, which keep what they held."""
        held = self._mapped.get(name)
        if held is None or held.shape[1:] != shape[1:] or len(held) < shape[0]:
            rows = shape[0] if held is None else shape[0] + shape[0] // SPARE_SHARE
            held = self._mapped[name] = self._map(name, (rows, *shape[1:]), kind)
        return held[: shape[0]]

    def are_on_disk(self) -> bool:
        """Whether the mapped files still are those of the folder; removed ones stay mapped."""
        try:
            return all(
                os.path.samestat(file, (self.folder / name).stat())
                for name, file in self._files.items()
            )
        except OSError:
            return False

    def _map(self, name: str, shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
        """Map a file; a full disk is an error here, and no SIGBUS later."""
        path, size = self.folder / name, int(np.prod(shape)) * np.dtype(kind).itemsize
        if self.read_only:
            return _map_copy(path, shape, kind) if size else np.empty(shape, kind)
        if not size:
            path.touch(mode=PRIVATE)
            return np.empty(shape, kind)
        with open_private(path, "ab") as file:
            status = os.fstat(file.fileno())
            if not os.path.samestat(self._files.setdefault(name, status), status):
                raise FileNotFoundError(errno.ENOENT, "another file is in its place", str(path))
            if file.tell() < size:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                file.truncate(size)
        return np.memmap(path, kind, mode="r+", shape=shape).view(np.ndarray)


def _map_copy(path: Path, shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
    return np.memmap(path, kind, mode="c", shape=shape).view(np.ndarray)
