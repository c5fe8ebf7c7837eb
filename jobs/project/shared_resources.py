"""What open workspaces of this process share: it is closed when the last of them closes.

An engine's workers outlive a workspace, so that the next job finds them running. Code that starts
such a resource registers how to close it; this module is independent of what it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_closers: list[Callable[[], None]] = []
_lock = threading.RLock()
_holders = 0


def close_with_last_workspace(close: Callable[[], None]) -> None:
    """Call `close` whenever the last open workspace closes."""
    _closers.append(close)


@contextmanager
def hold_resources() -> Iterator[None]:
    """Keep shared resources open while the block runs; the last holder closes them."""
    global _holders
    with _lock:
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                for close in _closers:
                    close()
