"""One process at a time adds to a mirror's files; any number of others read them beside it.

A process that was frozen and has lost its lease may wake up in the middle of adding rows. The lock
on its files ends with the process, not with the lease: its successor leaves those files alone and
reads the graph into new ones. Readers take no lock: they map what the manifest names, which a
writer only ever adds to (see `files.open_shared`).

The lock file holds who has it, so that a successor can name the process that it had to pass.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from weakref import WeakValueDictionary

SUFFIX = ".lock"
MAX_HOLDER_BYTES = 512


class Claim:
    """A lock of this process; it goes with this object, or with the process."""

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)

    def sign(self, holder: str) -> None:
        """Write who has the lock into its file; a full disk does not end a run for it."""
        try:
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, holder.encode()[:MAX_HOLDER_BYTES], 0)
        except OSError:
            return


_claims: WeakValueDictionary[Path, Claim] = WeakValueDictionary()
"""Claims of this process. The system drops a process's lock when any descriptor of its file is
closed, so that two claims of one file would end each other."""
_one_at_a_time = threading.Lock()


def claim(folder: Path, epoch: str) -> Claim | None:
    """Lock the files of `epoch` for this process; None where another process has them."""
    path = folder / f"{epoch}{SUFFIX}"
    with _one_at_a_time:
        held = _claims.get(path)
        if held is not None and _is_file_of(held, path):
            return held
        held = Claim(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            fcntl.lockf(held.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        _claims[path] = held
        return held


def find_holder(folder: Path, epoch: str) -> str | None:
    """Return who has locked the files of `epoch`, as it signed; None where no other process has.

    A lock of a version that did not sign is "another process".
    """
    held = claim(folder, epoch)
    if held is not None:
        return None
    try:
        text = (folder / f"{epoch}{SUFFIX}").read_bytes()[:MAX_HOLDER_BYTES]
    except OSError:
        return "another process"
    return text.decode(errors="replace").strip() or "another process"


def _is_file_of(held: Claim, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(held.descriptor), path.stat())
    except OSError:
        return False
