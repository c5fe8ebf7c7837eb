"""How many threads torch trains with: one, unless several were measured to win on a busy machine.

`python -m benchmarks.training` measures both, idle and beside busy processes. Below
`MIN_NUMBERS_FOR_TRAINING_THREADS` a second thread costs more processor time than it saves on the
clock, and threads that spin instead of sleeping lose at every size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["MIN_NUMBERS_FOR_TRAINING_THREADS", "choose_threads", "threads_for"]

#: Edges x width; with fewer, one thread is as fast on the clock and cheaper.
MIN_NUMBERS_FOR_TRAINING_THREADS = 100_000_000
USUAL_WIDTH = 64


def choose_threads(edges: int, width: int, usable: int) -> int:
    """Return how many of the `usable` threads work on this many edges should take.

    >>> choose_threads(20_000, 64, usable=8), choose_threads(10_000_000, 64, usable=8)
    (1, 8)
    """
    return usable if edges * width >= MIN_NUMBERS_FOR_TRAINING_THREADS else 1


@contextmanager
def threads_for(edges: int, usable: int, width: int = USUAL_WIDTH) -> Iterator[None]:
    """Set torch's threads for work on this many edges, and put them back."""
    before = torch.get_num_threads()
    torch.set_num_threads(choose_threads(edges, width, usable))
    try:
        yield
    finally:
        torch.set_num_threads(before)
