"""Cost estimate of a forward pass before it is run: numbers gathered, incrementally and in full.

Both ways run the same kernels, and those wait for memory: the time follows the numbers gathered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Cost"]

Way = Literal["incremental", "full"]

#: A row that is refreshed alone costs more than in a whole pass: lists of rows, no order in memory.
SCATTERED_ROW_COST = 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Numbers to gather for the change, and for all of the graph."""

    incremental: int
    full: int

    @property
    def way(self) -> Way:
        """The cheaper way.

        >>> Cost(incremental=100, full=10_000).way, Cost(incremental=6_000, full=10_000).way
        ('incremental', 'full')
        """
        return "incremental" if SCATTERED_ROW_COST * self.incremental < self.full else "full"
