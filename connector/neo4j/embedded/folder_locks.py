"""Two locks of a data folder, both kept by the kernel, so that no crash can leave one behind.

`start.lock` is held while a server is being started: two starts at once take turns.
`server.lock` is held by the server's process as long as it lives. Whether a server runs, and
under which process id, is asked of the kernel: a pid in a file may belong to somebody else by
now, the holder of a lock can't.
"""

import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ringfence.connector.errors import ServerError
from ringfence.connector.files import open_private

__all__ = ["lock_holder", "start_lock"]

POLL_SECONDS = 0.05


@contextmanager
def start_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the start lock; waits up to `timeout` seconds for its current holder."""
    deadline = time.monotonic() + timeout
    with open_private(path, "ab") as file:
        while not _try_lock(file.fileno()):
            if time.monotonic() > deadline:
                raise ServerError(
                    found=f"another start has held {path} for {timeout:.0f} seconds",
                    needed="one start at a time per data folder",
                    next_step="wait for it, or end it, then type the command again",
                )
            time.sleep(POLL_SECONDS)
        yield


def _try_lock(descriptor: int) -> bool:
    # flock, not lockf: it also keeps two threads of one process apart
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_holder(path: Path) -> int | None:
    """The id of the process that holds the POSIX lock on `path`; None if it is free.

    The server takes the lock with `fcntl.lockf`. A process can't see its own POSIX locks.
    """
    try:
        with path.open("rb") as file:
            answer = fcntl.fcntl(file.fileno(), fcntl.F_GETLK, _pack_query())
    except (FileNotFoundError, NotADirectoryError):  # a file may stand where the folder should
        return None
    kind, pid = _unpack_answer(answer)
    if kind == fcntl.F_UNLCK:
        return None
    if pid <= 0:  # and 0 must never reach kill(), where it means "my own process group"
        raise ServerError(
            found=f"{path} is held by a process that can't be seen from here",
            needed="one server per data folder, on this machine and in this container",
            next_step="stop it where it was started, or choose another data folder",
        )
    return pid


# struct flock: whole file, exclusive; the order of the fields is the platform's
_DARWIN, _LINUX = "qqihh", "hhqqi"


def _pack_query() -> bytes:
    if sys.platform == "darwin":
        return struct.pack(_DARWIN, 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    return struct.pack(_LINUX, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def _unpack_answer(answer: bytes) -> tuple[int, int]:
    if sys.platform == "darwin":
        _, _, pid, kind, _ = struct.unpack(_DARWIN, answer)
    else:
        kind, _, _, _, pid = struct.unpack(_LINUX, answer)
    return kind, pid
