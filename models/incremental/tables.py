"""What is kept between two passes: arrays that the caller owns, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.incremental.plan import Plan

__all__ = ["COLUMNS", "NEVER", "SUMS", "Tables", "empty_tables", "shape_of"]

NEVER = -1  # a row that was never computed
SUMS = 1 << 18  # slots for sums at most: 512 bytes each with 64 hidden units


@dataclass(slots=True)
class Tables:
    """Rows of the graph's nodes; room for more of them than there are is allowed.

    first float32 [room, plan.first_width]: transformed features, for GCN as messages · second
    float32 [room, plan.second_width]: the first layer's results, already multiplied by the second
    layer's weights · scale float32 [room]: (number heard + 1)^-1/2 · computed int64 [room]: the
    graph's version up to which the row of `second` is known to be right. GCN alone: slots int32
    [room]: 1 + the row of sums float64 [at most SUMS, first_width] where the sum of what a node
    hears is kept, 0 for none. `rows` of `first` are filled; `version` is that of `scale`; `used`
    slots were given away.
    """

    first: NDArray[np.float32]
    second: NDArray[np.float32]
    scale: NDArray[np.float32]
    computed: NDArray[np.int64]
    slots: NDArray[np.int32]
    sums: NDArray[np.float64]
    rows: int = 0
    version: int = NEVER
    used: int = 0

    @property
    def room(self) -> int:
        """How many nodes fit."""
        return len(self.computed)

    def forget_sums(self) -> None:
        """Take all slots back."""
        self.slots[:] = 0
        self.used = 0

    def give_slots(self, rows: NDArray[np.int64]) -> None:
        """Give a slot to each of ``rows`` that has none; where they run out, all are taken back."""
        bare = rows[self.slots[rows] == 0]
        if self.used + len(bare) > len(self.sums):
            self.forget_sums()
            bare = rows[: len(self.sums)]
        self.slots[bare] = np.arange(self.used + 1, self.used + 1 + len(bare))
        self.used += len(bare)


COLUMNS: dict[str, type[np.generic]] = {
    "first": np.float32,
    "second": np.float32,
    "scale": np.float32,
    "computed": np.int64,
    "slots": np.int32,
    "sums": np.float64,
}


def shape_of(name: str, plan: Plan, room: int) -> tuple[int, ...]:
    """Return the shape of one array for `room` nodes."""
    widths = {"first": (plan.first_width,), "second": (plan.second_width,)}
    if name == "sums":
        return (min(room, SUMS) if plan.has_messages else 0, plan.first_width)
    if name == "slots" and not plan.has_messages:
        return (0,)
    return (room, *widths.get(name, ()))


def empty_tables(
    plan: Plan, room: int, make: Callable[[tuple[int, ...], Any], NDArray[Any]] = np.zeros
) -> Tables:
    """Return tables for `room` nodes; the first pass over them is a full one."""
    arrays: dict[str, Any] = {
        name: make(shape_of(name, plan, room), kind) for name, kind in COLUMNS.items()
    }
    arrays["computed"][:] = NEVER
    return Tables(**arrays)
