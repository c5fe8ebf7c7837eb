"""One process at a time adds to a mirror's files.

A process that was frozen and has lost its lease may wake up in the middle of adding rows. The lock
on its files ends with the process, not with the lease: its successor leaves those files alone and
reads the graph into new ones.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

SUFFIX = ".lock"


class Claim:
    """A lock of this process; it goes with this object, or with the process."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def claim(folder: Path, epoch: str) -> Claim | None:
    """Lock the files of `epoch` for this process; None where another process has them."""
    held = Claim(os.open(folder / f"{epoch}{SUFFIX}", os.O_RDWR | os.O_CREAT, 0o600))
    try:
        fcntl.lockf(held.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    return held
