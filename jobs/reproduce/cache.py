"""Results kept as small files, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cache"]

Record = TypeVar("Record")  # a JSON object


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of results by name; with ``resume`` off, what is there is made anew, once."""

    folder: Path
    resume: bool = True
    made: set[str] = field(default_factory=set)

    def record(self, name: str, make: Callable[[], Record]) -> Record:
        """The JSON object of this name, made and stored if it isn't there."""
        path = self.folder / f"{name}.json"
        if self._usable(path):
            stored: Record = json.loads(path.read_text())
            return stored
        made = make()
        self.made.add(str(path))
        _replace(path, lambda part: part.write_text(json.dumps(made, allow_nan=False)))
        return made

    def arrays(
        self, name: str, make: Callable[[], Mapping[str, NDArray[Any]]]
    ) -> dict[str, NDArray[Any]]:
        """The arrays of this name, made and stored if they aren't there."""
        path = self.folder / f"{name}.npz"
        if self._usable(path):
            with np.load(path, allow_pickle=False) as stored:
                return dict(stored)
        made = dict(make())
        self.made.add(str(path))
        _replace(path, lambda part: _write_npz(part, made))
        return made

    def has(self, name: str) -> bool:
        """Whether the JSON object of this name is there."""
        return self._usable(self.folder / f"{name}.json")

    def _usable(self, path: Path) -> bool:
        return path.is_file() and (self.resume or str(path) in self.made)


def _write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside and rename: a killed run leaves no half file behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    write(part)
    part.replace(path)
