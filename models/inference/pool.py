"""Threads that share the rows of a pass."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MIN_NUMBERS_FOR_THREADS", "Pool"]

#: Numbers moved per layer (edges x width); with fewer, threads cost more than they help.
MIN_NUMBERS_FOR_THREADS = 2_000_000


class Pool:
    """Threads that share a list of rows, each its part of about equally many neighbours."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._threads = ThreadPoolExecutor(workers) if workers > 1 else None

    def __call__(
        self, kernel: Callable[..., None], offsets: NDArray[np.int64], *arguments: Any
    ) -> None:
        """Run ``kernel(start, stop, *arguments)`` over all rows."""
        rows = len(offsets) - 1
        if self._threads is None or rows < 4 * self.workers:
            kernel(0, rows, *arguments)
            return
        shares = np.linspace(offsets[0], offsets[-1], 4 * self.workers + 1)
        cuts = np.searchsorted(offsets, shares)
        cuts[0], cuts[-1] = 0, rows
        tasks = [
            self._threads.submit(kernel, low, high, *arguments)
            for low, high in pairwise(cuts.tolist())
            if low < high
        ]
        for task in tasks:
            task.result()

    def close(self) -> None:
        """Stop the threads."""
        if self._threads is not None:
            self._threads.shutdown()
