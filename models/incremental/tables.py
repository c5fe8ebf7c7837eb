"""What is kept between two passes: arrays that the caller owns, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.incremental.plan import Plan

__all__ = ["COLUMNS", "Tables", "empty_tables"]

NEVER = -1  # a row that was never computed


@dataclass(slots=True)
class Tables:
    """Rows of the graph's nodes; room for more of them than there are is allowed.

    first float32 [room, plan.first_width]: transformed features · second float32 [room,
    plan.second_width]: the first layer's results, already multiplied by the second layer's weights
    · scale float32 [room]: (number heard + 1)^-1/2 · computed int64 [room]: the graph's version at
    which the row of `second` was made. `rows` of `first` are filled; `version` is that of `scale`.
    """

    first: NDArray[np.float32]
    second: NDArray[np.float32]
    scale: NDArray[np.float32]
    computed: NDArray[np.int64]
    rows: int = 0
    version: int = NEVER

    @property
    def room(self) -> int:
        """How many nodes fit."""
        return len(self.computed)


COLUMNS: dict[str, type[np.generic]] = {
    "first": np.float32,
    "second": np.float32,
    "scale": np.float32,
    "computed": np.int64,
}


def shape_of(name: str, plan: Plan, room: int) -> tuple[int, ...]:
    """Return the shape of one array for `room` nodes."""
    widths = {"first": (plan.first_width,), "second": (plan.second_width,)}
    return (room, *widths.get(name, ()))


def empty_tables(
    plan: Plan, room: int, make: Callable[[tuple[int, ...], Any], NDArray[Any]] = np.zeros
) -> Tables:
    """Return tables for `room` nodes; the first pass over them is a full one."""
    arrays = {name: make(shape_of(name, plan, room), kind) for name, kind in COLUMNS.items()}
    arrays["computed"][:] = NEVER
    return Tables(arrays["first"], arrays["second"], arrays["scale"], arrays["computed"])
