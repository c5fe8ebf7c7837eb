"""Threads that share the rows of an array, where there are enough numbers to share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

__all__ = ["share_rows"]

PARTS_PER_WORKER = 4  # small parts, so that a thread that loses its core delays the others little


def share_rows(rows: int, workers: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for parts that make up all rows, side by side with workers.

    What it raises is raised here. Threads help if `work` releases the GIL.

    >>> seen = []
    >>> share_rows(10, 1, lambda start, stop: seen.append((start, stop)))
    >>> seen
    [(0, 10)]
    """
    if workers < 2 or rows < PARTS_PER_WORKER * workers:
        work(0, rows)
        return
    cuts = np.linspace(0, rows, PARTS_PER_WORKER * workers + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(workers) as threads:
        for part in [threads.submit(work, start, stop) for start, stop in pairwise(cuts)]:
            part.result()
