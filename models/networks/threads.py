"""How many threads torch should use: on small graphs one is several times faster than two."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ringfence.models.inference.pool import MIN_NUMBERS_FOR_THREADS


@contextmanager
def threads_for(edges: int, width: int) -> Iterator[None]:
    """Set torch's threads for work on this many edges, and put them back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if edges * width < MIN_NUMBERS_FOR_THREADS else os.cpu_count() or 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
