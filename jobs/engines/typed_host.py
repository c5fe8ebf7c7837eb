"""A partition of a graph of several labels with its place on disk; see `partition_host`.

Its rules are those of the other partitions: open while a pass works on it, closed when the mirror
is saved, and filled again where it can't be trusted.
"""

from __future__ import annotations

import os
import shutil
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.files import make_private_folder
from ringfence.jobs.engines.mapped_arrays import MappedArrays
from ringfence.jobs.engines.partition_host import PartitionHost, Standing
from ringfence.jobs.scoring.table_state import read_state, still_valid, write_state
from ringfence.models.inference.border import checksum
from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.partition.typed_part import TypedPart, TypedUpdate, Values
from ringfence.models.inference.typed.plan import TypedPlan
from ringfence.models.schema import CLASSIFIED

Ints = NDArray[np.int64]
OWN: dict[str, type[np.generic]] = {"rows": np.int64, "owners": np.int16, "labels": np.uint8}
LISTS: dict[str, type[np.generic]] = {
    "offsets": np.int64, "sources": np.int32, "late_rows": np.int64, "late_offsets": np.int64,
    "late_sources": np.int32,
}  # fmt: skip


class WorkerHost(PartitionHost):
    """What a worker holds: a partition of one label, or one of several."""

    def __init__(self, folder: str, number: int, parts: int, threads: int) -> None:
        super().__init__(folder, number, parts, threads)
        self.typed: TypedPart | None = None

    def typed_open(self, name: str, plan: TypedPlan, version: int) -> Standing:
        """Open what was kept for a model and a numbering of nodes; empty where nothing was."""
        place = self.folder / f"part-{self.number}-of-{self.parts}" / name
        if self.typed is None or place != self.place or not self.arrays.are_on_disk():
            self.place, self.is_open = place, False
            self.typed = self._restored_typed(plan, version) or self._empty_typed(plan)
        elif self.is_open and self.typed.version != version:
            return self.typed_forget()
        return self._typed_standing()

    def typed_forget(self) -> Standing:
        """Begin anew, with nothing."""
        self.typed = self._empty_typed(self._open_typed().plan)
        self.is_open = False
        return self._typed_standing()

    def typed_update(self, update: TypedUpdate) -> int:
        """Take changes in; return the version that the partition has then."""
        self._mark_open()
        self._open_typed().update(update)
        return self._open_typed().version

    def typed_needs(self, number: int, rows: Ints) -> list[Any]:
        """Return how many rows each other partition must give, then these rows of each."""
        found = self._open_typed().needs(number, np.array(rows), self.parts)
        return [np.array([len(one) for one in found]), *found]

    def typed_give(self, number: int, rows: Ints) -> dict[int, NDArray[np.float32]]:
        """Return what a layer is given of some rows, by label."""
        return self._open_typed().give(number, rows)

    def typed_compute(self, number: int, *given: Values) -> int:
        """Compute a layer at the rows that it was asked for; return how many."""
        return self._open_typed().compute(number, given, self.pool)

    def typed_outputs(self, rows: Ints) -> NDArray[np.float32]:
        """Return what the last layer gave at some rows."""
        return self._open_typed().outputs(rows, CLASSIFIED)

    def typed_seal(self) -> int:
        """Write what belongs to the arrays; they stay open until the mirror is saved."""
        part = self._open_typed()
        part.inputs = {}
        arrays: dict[str, NDArray[Any]] = {name: getattr(part, name) for name in OWN}
        for front, lists in (("others", part.others), ("codes", part.codes)):
            arrays |= {f"{front}.{name}": getattr(lists, name) for name in LISTS}
        for name, values in arrays.items():
            part.allocate(name, values.shape, values.dtype.type)[:] = values
        lengths = {name: len(values) for name, values in arrays.items()}
        arrays |= {f"encoded.{at}": part.encoded(at) for at in range(len(part.plan.schema.labels))}
        sums = {name: checksum(values) for name, values in arrays.items()}
        facts = {"version": part.version, "lengths": lengths, "checksums": sums}
        write_state(self.place, {**facts, "open": True})
        return len(part.rows)

    def _typed_standing(self) -> Standing:
        part = self._open_typed()
        return Standing(
            part.version, len(part.owners), zlib.crc32(part.owners.tobytes()), os.getpid()
        )

    def _open_typed(self) -> TypedPart:
        if self.typed is None:
            raise ValueError(f"partition {self.number} was not opened")
        return self.typed

    def _empty_typed(self, plan: TypedPlan) -> TypedPart:
        shutil.rmtree(self.place.parent, ignore_errors=True)
        make_private_folder(self.place)
        self.arrays = MappedArrays(self.place)
        return TypedPart(self.number, plan, self.arrays)

    def _restored_typed(self, plan: TypedPlan, version: int) -> TypedPart | None:
        """What the last run left, or None where it can't be trusted."""
        state = read_state(self.place)
        if not state or not still_valid(state, version) or "lengths" not in state:
            return None
        allocate = self.arrays = MappedArrays(self.place)
        kinds = OWN | {f"{front}.{name}": kind for front in ("others", "codes")
                       for name, kind in LISTS.items()}  # fmt: skip
        if set(kinds) != set(state["lengths"]):
            return None
        own = {name: allocate(name, (state["lengths"][name],), kind).copy()
               for name, kind in kinds.items()}  # fmt: skip
        others, codes = (
            OwnedLists(*(own[f"{front}.{name}"] for name in LISTS)) for front in ("others", "codes")
        )
        part = TypedPart(
            self.number, plan, allocate, own["rows"], own["owners"], own["labels"], others, codes,
            int(state["version"]),
        )  # fmt: skip
        arrays = own | {f"encoded.{at}": part.encoded(at) for at in range(len(plan.schema.labels))}
        damaged = [name for name in arrays if checksum(arrays[name]) != state["checksums"][name]]
        return None if damaged else part
