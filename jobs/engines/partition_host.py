"""A partition with its place on disk: what a worker holds, from run to run.

Its arrays are mapped files, under the rules of `jobs.scoring.table_state`: marked open while a pass
works on them, closed when the mirror that they belong to is saved. A partition that a death left
open, that fails its checksums, or whose files went from the disk while it was in use, comes back
empty and is filled again from the mirror.
"""

from __future__ import annotations

import os
import shutil
import zlib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import make_private_folder
from ringfence.jobs.engines.mapped_arrays import MappedArrays
from ringfence.jobs.scoring.table_state import read_state, still_valid, write_state
from ringfence.models.inference.border import checksum
from ringfence.models.inference.layers.base import InferencePlan
from ringfence.models.inference.partition import Part, PartUpdate
from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.partition.part import Given, TableName, Whose
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED

Ints = NDArray[np.int64]
LISTS = ("offsets", "sources", "late_rows", "late_offsets", "late_sources")
TABLES = ("features", "first", "second", "scale", "computed")
KINDS: dict[str, type[np.generic]] = {
    "rows": np.int64, "owners": np.int16, "offsets": np.int64, "sources": np.int32,
    "late_rows": np.int64, "late_offsets": np.int64, "late_sources": np.int32,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Standing:
    """Up to which version a partition is right, for how many nodes, under which division."""

    version: int
    nodes: int
    owners_crc: int
    process: int


class PartitionHost:
    """One partition of one project, in `folder`; `open` comes first."""

    def __init__(self, folder: str, number: int, parts: int, threads: int) -> None:
        self.folder, self.number, self.parts = Path(folder), number, parts
        self.pool = Pool(threads)
        self.place = self.folder
        self.part: Part | None = None
        self.arrays = MappedArrays(self.folder)
        self.is_open = False  # worked on since it was closed

    def open(self, name: str, plan: InferencePlan, version: int) -> Standing:
        """Open what was kept for a model and a numbering of nodes; empty where nothing was.

        A partition that another version was worked into, whose mirror was never saved, is emptied.
        """
        place = self.folder / f"part-{self.number}-of-{self.parts}" / name
        if self.part is None or place != self.place or not self.arrays.are_on_disk():
            self.place, self.is_open = place, False
            self.part = self._restored(_own_arrays(plan), version)
            if self.part is None:
                self.part = self._empty(_own_arrays(plan))
        elif self.is_open and self.part.version != version:
            return self.forget()
        return self._standing()

    def forget(self) -> Standing:
        """Begin anew, with nothing."""
        self.part = self._empty(self._open_part().plan)
        self.is_open = False
        return self._standing()

    def update(self, update: PartUpdate) -> int:
        """Take changes in; return the version that the partition has then."""
        part = self._open_part()
        self._mark_open()
        part.update(update)
        return part.version

    def mark_stale(self, rows: Ints, newest: Ints) -> int:
        """Note which rows must be made again; return how many."""
        self._mark_open()
        return self._open_part().mark_stale(rows, newest)

    def want(self, rows: Ints) -> int:
        """Note whose outputs are wanted; return how many."""
        self._open_part().want(rows)
        return len(rows)

    def needs(self, whose: Whose) -> list[Any]:
        """Return how many rows each other partition must give, then these rows of each."""
        found = self._open_part().needs(whose, self.parts)
        return [np.array([len(rows) for rows in found]), *found]

    def give(self, table: TableName, rows: Ints) -> Given:
        """Return rows of a table for another partition."""
        return self._open_part().give(table, rows)

    def compute_second(self, *given: Given) -> int:
        """Compute the first layer at the stale rows; return how many."""
        part = self._open_part()
        done = part.compute_second(given, self.pool)
        part.mark_computed()
        return done

    def outputs(self, *given: Given) -> NDArray[np.float32]:
        """Return the outputs at the wanted rows."""
        return self._open_part().outputs(given, self.pool)

    def begin_walk(self) -> int:
        """Let a walk over the whole graph begin; return its steps."""
        self._open_part().begin_walk()
        return int(getattr(self._open_part().plan, "steps", 0))

    def step(self, *given: Given) -> bool:
        """Take a step of it."""
        self._open_part().step(given, self.pool)
        return True

    def walked(self) -> NDArray[np.float32]:
        """Return where it has come at the wanted rows."""
        return self._open_part().walked()

    def seal(self) -> int:
        """Write what belongs to the arrays; they stay open until the mirror is saved."""
        part = self._open_part()
        arrays: dict[str, NDArray[Any]] = {"rows": part.rows, "owners": part.owners}
        arrays |= {name: getattr(part.lists, name) for name in LISTS}
        for name, values in arrays.items():
            kept = part.allocate(name, values.shape, KINDS[name])
            if kept.ctypes.data != values.ctypes.data:
                kept[:] = values
        lengths = {name: len(values) for name, values in arrays.items()}
        arrays |= {name: part.array(name) for name in TABLES}
        sums = {name: checksum(values) for name, values in arrays.items()}
        facts = {"version": part.version, "lengths": lengths, "checksums": sums}
        write_state(self.place, {**facts, "open": True})
        return len(part.rows)

    def close_state(self, version: int) -> bool:
        """Let the next run use what this one left; False where that is of another version."""
        state = read_state(self.place)
        fits = bool(state) and "lengths" in state and state["version"] == version
        if fits:
            write_state(self.place, {**state, "open": False})
            self.is_open = False
        return fits

    def _mark_open(self) -> None:
        self.is_open = True
        write_state(self.place, {"open": True, "version": NEVER_COMPUTED})

    def _standing(self) -> Standing:
        part = self._open_part()
        crc = zlib.crc32(part.owners.tobytes())
        return Standing(part.version, len(part.owners), crc, os.getpid())

    def _open_part(self) -> Part:
        if self.part is None:
            raise ValueError(f"partition {self.number} was not opened")
        return self.part

    def _empty(self, plan: InferencePlan) -> Part:
        shutil.rmtree(self.place.parent, ignore_errors=True)
        make_private_folder(self.place)
        self.arrays = MappedArrays(self.place)
        return Part(self.number, plan, self.arrays)

    def _restored(self, plan: InferencePlan, version: int) -> Part | None:
        """What the last run left, or None where it can't be trusted."""
        state = read_state(self.place)
        if not state or not still_valid(state, version) or "lengths" not in state:
            return None
        allocate = self.arrays = MappedArrays(self.place)
        own = {
            name: allocate(name, (length,), KINDS[name])
            for name, length in state["lengths"].items()
        }
        part = Part(self.number, plan, allocate, own["rows"].copy(), own["owners"].copy())
        part.lists = OwnedLists(
            own["offsets"], own["sources"], *(own[name].copy() for name in LISTS[2:])
        )
        part.version = int(state["version"])
        arrays = own | {name: part.array(name) for name in TABLES}
        damaged = [name for name in arrays if checksum(arrays[name]) != state["checksums"][name]]
        return None if damaged else part


def _own_arrays(plan: InferencePlan) -> InferencePlan:
    """A plan whose arrays may be written: those that came from another process may not."""
    arrays: dict[str, Any] = {
        one.name: np.array(getattr(plan, one.name))
        for one in fields(plan)
        if isinstance(getattr(plan, one.name), np.ndarray)
    }
    return replace(plan, **arrays)


def no_rows(width: int) -> Given:
    """Return what a partition gives of which nothing is needed."""
    return np.empty((0, width), np.float32), np.empty(0, np.float32)
