"""A partition with its cache on disk: what a worker holds, from run to run.

Its arrays are mapped files, under the rules of `jobs.inference.cache_state`: open while a pass
works on them, closed when the mirror that they belong to is saved. A partition that a death left
open, that fails its checksums, or whose files went from the disk while it was in use, comes back
empty and is filled again from the mirror.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.inference.cache_files import CacheFiles
from ringfence.models.inference.partition import Part, PartUpdate, new_part
from ringfence.models.inference.pool import Pool

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """Up to which version a partition is up to date, for how many nodes, under which division."""

    version: int
    nodes: int
    owners_crc: int


class PartitionHost:
    """One partition of one project, in `folder`; `open` comes first."""

    def __init__(self, folder: str, number: int, parts: int, threads: int) -> None:
        self.folder, self.number, self.parts = Path(folder), number, parts
        self.pool = Pool(threads)
        self.cache = CacheFiles(self.folder)
        self.part: Part[Any] | None = None
        self.is_open = False  # worked on since it was closed

    def open(self, name: str, plan: Any, version: int) -> PartitionStatus:
        """Open the cache of a model and a numbering of nodes; empty if there is none to trust.

        A partition with changes of another version, whose mirror was never saved, is emptied.
        """
        place = self.folder / f"part-{self.number}-of-{self.parts}" / name
        if self.part is None or place != self.cache.place or not self.cache.arrays.are_on_disk():
            self.cache, self.is_open = CacheFiles(place), False
            self.part = self._restored_part(plan, version)
        elif self.is_open and self.part.version != version:
            return self.clear()
        return self._status()

    def clear(self) -> PartitionStatus:
        """Start over, empty."""
        self.part = self._empty_part(self._open_part().plan)
        self.is_open = False
        return self._status()

    def update(self, update: PartUpdate) -> int:
        """Apply changes; return the version that the partition has then."""
        part = self._open_part()
        self._mark_open()
        part.update(update)
        return part.version

    def needs(self, layer: int, *chosen: Any) -> list[Any]:
        """Return how many rows each other partition must give, then these rows of each.

        chosen: the rows at which the layer is computed, and what else `Part.needs` takes.
        """
        part = self._open_part()
        part.needs(layer, *chosen)
        places = part.halo_places(self.parts)
        return [np.array([len(of_owner) for of_owner in places]),
                *(part.halo[of_owner] for of_owner in places)]  # fmt: skip

    def give(self, layer: int, rows: Ints) -> Any:
        """Return what a layer of another partition reads of some rows."""
        return self._open_part().give(layer, rows)

    def compute(self, layer: int, *given: Any) -> int:
        """Compute a layer at the rows of the last `needs`; return how many."""
        part = self._open_part()
        self._mark_open()
        return part.compute(layer, given, self.pool)

    def outputs(self, rows: Ints) -> NDArray[np.float32]:
        """Return the outputs at some rows."""
        return self._open_part().outputs(rows)

    def seal(self) -> int:
        """Write the arrays for the next pass; they stay open until the mirror is saved."""
        part = self._open_part()
        part.forget_pass()
        self.cache.seal(part.version, part.arrays())
        return len(part.rows)

    def close_state(self, version: int) -> bool:
        """Close the cache for the next run; False if it is of another version."""
        fits = self.cache.close(version)
        self.is_open = self.is_open and not fits
        return fits

    def _mark_open(self) -> None:
        self.is_open = True
        self.cache.mark_open()

    def _status(self) -> PartitionStatus:
        part = self._open_part()
        return PartitionStatus(part.version, len(part.owners), zlib.crc32(part.owners.tobytes()))

    def _open_part(self) -> Part[Any]:
        if self.part is None:
            raise ValueError(f"partition {self.number} was not opened")
        return self.part

    def _restored_part(self, plan: Any, version: int) -> Part[Any]:
        """The partition as the last run left it; an empty one if that can't be trusted."""
        cached = self.cache.restore(version)
        if cached is None:
            return self._empty_part(_writeable(plan))
        part = new_part(self.number, _writeable(plan), self.cache.arrays)
        part.restore(cached.arrays, cached.version)
        return part

    def _empty_part(self, plan: Any) -> Part[Any]:
        self.cache.clear()
        return new_part(self.number, plan, self.cache.arrays)


def _writeable(plan: Any) -> Any:
    """A plan whose arrays may be written: those that came from another process may not."""
    arrays: dict[str, Any] = {
        column.name: np.array(getattr(plan, column.name))
        for column in fields(plan)
        if isinstance(getattr(plan, column.name), np.ndarray)
    }
    return replace(plan, **arrays)
