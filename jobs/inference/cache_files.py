"""The cache of a forward pass on disk: arrays by name, with checksums and a mark while in use.

Every pass, in this process or in a partition, keeps what it wants to find again as named arrays.
`restore` gives them back only if a finished run closed them (see `cache_state`) and all checksums
fit; anything else is removed and computed again.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import make_private_folder
from ringfence.jobs.inference.cache_state import closed_state, read_state, write_state
from ringfence.jobs.inference.mapped_arrays import MappedArrays
from ringfence.models.inference.kernels.checksum import checksum
from ringfence.models.inference.state import NEVER_COMPUTED

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class CachedArrays:
    """Arrays by name as a finished run left them, and the version of the mirror that they fit."""

    version: int
    arrays: Arrays


def cache_place(folder: Path, model_version: str, epoch: str) -> Path:
    """Return the folder of the cache of one model version and one numbering of the nodes."""
    return folder / f"{model_version}-{epoch}"


class CacheFiles:
    """One cache in the folder `place`; `damage` says what was wrong with it ("": nothing)."""

    def __init__(self, place: Path, *, read_only: bool = False) -> None:
        self.place, self.read_only = place, read_only
        self.arrays = MappedArrays(place, read_only=read_only)
        self.damage = ""

    def restore(self, version: int) -> CachedArrays | None:
        """Return the arrays for a mirror of this version; None if there are none to trust."""
        state = closed_state(self.place, version)
        if not state:
            return None
        described: dict[str, dict[str, Any]] = state["arrays"]
        try:
            arrays = {
                name: self.arrays(name, tuple(array["shape"]), np.dtype(array["kind"]).type)
                for name, array in described.items()
            }
        except (FileNotFoundError, ValueError):  # of a read-only cache: missing or too short
            return None
        if damaged := damaged_arrays(arrays, described):
            self.damage = f"the kept tables were damaged ({', '.join(damaged)}) and are made again"
            return None
        return CachedArrays(int(state["version"]), arrays)

    def clear(self) -> None:
        """Begin with no files; caches of other models and numberings are removed too."""
        shutil.rmtree(self.place.parent, ignore_errors=True)
        make_private_folder(self.place)
        self.arrays = MappedArrays(self.place)

    def mark_open(self) -> None:
        """Mark the cache as being worked on: if the process ends now, it is not used again."""
        write_state(self.place, {"open": True, "version": NEVER_COMPUTED})

    def seal(self, version: int, arrays: Arrays) -> None:
        """Write arrays and their checksums; the cache stays open until the mirror is saved."""
        for name, values in arrays.items():
            stored = self.arrays(name, values.shape, values.dtype.type)
            if stored.ctypes.data != values.ctypes.data:
                stored[:] = values
        described = {
            name: {"shape": values.shape, "kind": values.dtype.str, "checksum": checksum(values)}
            for name, values in arrays.items()
        }
        write_state(self.place, {"open": True, "version": version, "arrays": described})

    def close(self, version: int) -> bool:
        """Close the cache for the next run; False if it was not sealed for this mirror version."""
        state = read_state(self.place)
        fits = bool(state) and "arrays" in state and state["version"] == version
        if fits:
            write_state(self.place, {**state, "open": False})
        return fits


def damaged_arrays(arrays: Arrays, described: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the arrays that don't hold what the last run left in them."""
    return [name for name in arrays if checksum(arrays[name]) != described[name]["checksum"]]
