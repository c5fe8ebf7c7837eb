"""Keys that are all integers: their rows without a text for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ABSENT = -1
PREFIX = b"i:"
MAX_TABLE_PLACES_PER_KEY = 4  # where values lie further apart, they are sorted instead


class Integers:
    """Rows by value: a plain table where the values lie close together, else sorted values."""

    def __init__(self, values: Ints, rows: Ints) -> None:
        self.count = len(values)
        self.low = int(values.min())
        span = int(values.max()) - self.low + 1
        self.table = None
        if span <= MAX_TABLE_PLACES_PER_KEY * self.count:
            self.table = np.full(span, ABSENT, np.int32)
            self.table[values - self.low] = rows
        else:
            order = np.argsort(values, kind="stable")
            self.rows, self.ordered = rows[order], values[order]

    def find(self, wanted: Ints) -> Ints:
        """Return the row of each value, -1 where there is none."""
        if self.table is not None:
            inside = (wanted >= self.low) & (wanted < self.low + len(self.table))
            places = np.where(inside, wanted, self.low) - self.low
            return np.where(inside, self.table[places], ABSENT).astype(np.int64)
        at = np.minimum(np.searchsorted(self.ordered, wanted), self.count - 1)
        return np.where(self.ordered[at] == wanted, self.rows[at], ABSENT)


def integers_in(text: NDArray[np.uint8], ends: Ints) -> Ints | None:
    """Return the values of typed keys as the mirror stores them; None unless all are integers.

    >>> integers_in(np.frombuffer(b"i:7i:-12", np.uint8), np.array([3, 8])).tolist()
    [7, -12]
    """
    if not len(ends):
        return None
    starts = np.append(0, ends[:-1])
    if not ((text[starts] == PREFIX[0]) & (text[starts + 1] == PREFIX[1])).all():
        return None
    return np.fromstring(text.tobytes().replace(PREFIX, b" "), np.int64, sep=" ")
