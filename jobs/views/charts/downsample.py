"""Long histories are thinned, so a page or a report stays small whatever the number of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

MAX_POINTS = 300
T = TypeVar("T")


def thinned(rows: Sequence[T], most: int = MAX_POINTS) -> list[T]:
    """Return at most `most` rows, evenly spread, first and last among them.

    >>> thinned(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(rows) <= most:
        return list(rows)
    chosen = np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))
    return [rows[i] for i in chosen]
