"""What is kept between two passes: arrays that the caller owns, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.layers.base import InferencePlan, MessagePlan

__all__ = ["MAX_SUM_SLOTS", "NEVER_COMPUTED", "TABLE_COLUMNS", "Tables", "empty_tables", "shape_of"]

NEVER_COMPUTED = -1  # a row that was never computed
MAX_SUM_SLOTS = 1 << 18  # slots for sums at most: 512 bytes each with 64 hidden units


@dataclass(slots=True)
class Tables:
    """Rows of the graph's nodes; room for more of them than there are is allowed.

    first float32 [room, plan.first_width]: transformed features, for GCN as messages · second
    float32 [room, plan.second_width]: the first layer's results, already multiplied by the second
    layer's weights · scale float32 [room]: (incoming neighbours + 1)^-1/2 · computed int64 [room]:
    the graph's version up to which the row of `second` is known to be valid. GCN alone: slots int32
    [room]: 1 + the row of sums float64 [at most MAX_SUM_SLOTS, first_width] where the sum of a
    node's messages is kept, 0 for none · hashes uint64 [as sums]: of the neighbours in each sum.
    `rows` of `first` are filled; `version` is that of `scale`; slots above `used` hold no sum yet.
    """

    first: NDArray[np.float32]
    second: NDArray[np.float32]
    scale: NDArray[np.float32]
    computed: NDArray[np.int64]
    slots: NDArray[np.int32]
    sums: NDArray[np.float64]
    hashes: NDArray[np.uint64]
    rows: int = 0
    version: int = NEVER_COMPUTED
    used: int = 0

    @property
    def room(self) -> int:
        """How many nodes fit."""
        return len(self.computed)

    def forget_sums(self) -> None:
        """Take all slots back."""
        self.slots[:] = 0
        self.used = 0

    def filled(self) -> dict[str, NDArray[Any]]:
        """Return of each array the rows that a later pass may read.

        Rows of the wide arrays that were never filled are left out: they are written before they
        are read.
        """
        rows = {"first": self.rows, "second": self.rows, "sums": self.used, "hashes": self.used}
        return {name: getattr(self, name)[: rows.get(name, self.room)] for name in TABLE_COLUMNS}

    def give_slots(self, rows: NDArray[np.int64], needed: NDArray[np.int64]) -> None:
        """Give a slot to each of ``rows`` that has none and is about to be gathered.

        Where slots run out, rows that are not ``needed`` now give theirs back; what is left then is
        shared out, and rows that get none are gathered whenever they are needed.
        """
        bare = rows[self.slots[rows] == 0]
        free = np.arange(self.used + 1, min(self.used + len(bare), len(self.sums)) + 1)
        if len(free) < len(bare):
            free = self._take_back(needed)
        bare = bare[: len(free)]
        self.slots[bare] = free[: len(bare)]
        self.used = max(self.used, int(free[: len(bare)].max(initial=0)))

    def _take_back(self, needed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep slots for the needed rows; return all others."""
        kept = self.slots[needed]
        self.slots[:] = 0
        self.slots[needed] = kept
        taken = np.zeros(len(self.sums) + 1, np.bool_)
        taken[kept] = True
        return np.flatnonzero(~taken[1:]) + 1


TABLE_COLUMNS: dict[str, type[np.generic]] = {
    "first": np.float32,
    "second": np.float32,
    "scale": np.float32,
    "computed": np.int64,
    "slots": np.int32,
    "sums": np.float64,
    "hashes": np.uint64,
}


def shape_of(name: str, plan: InferencePlan, room: int) -> tuple[int, ...]:
    """Return the shape of one array for `room` nodes."""
    widths = {"first": (plan.first_width,), "second": (plan.second_width,)}
    keeps_sums = isinstance(plan, MessagePlan)
    slots = min(room, MAX_SUM_SLOTS) if keeps_sums else 0
    if name in ("sums", "hashes"):
        return (slots, plan.first_width) if name == "sums" else (slots,)
    if name == "slots" and not keeps_sums:
        return (0,)
    return (room, *widths.get(name, ()))


def empty_tables(
    plan: InferencePlan, room: int, make: Callable[[tuple[int, ...], Any], NDArray[Any]] = np.zeros
) -> Tables:
    """Return tables for `room` nodes; the first pass over them is a full one."""
    arrays: dict[str, Any] = {
        name: make(shape_of(name, plan, room), kind) for name, kind in TABLE_COLUMNS.items()
    }
    arrays["computed"][:] = NEVER_COMPUTED
    return Tables(**arrays)
