"""Files that only this user can read; some appear under their name only when complete."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ringfence.connector.errors import FolderError

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
PRIVATE = 0o600  # read and written by this user alone
PRIVATE_FOLDER = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, closed to other users.

    Existing folders keep their permissions, which may have been opened on purpose. One that can't
    be made is a `FolderError`; a full disk stays the system's error, which a run explains as such.
    """
    part = folder
    try:
        for part in reversed((folder, *folder.parents)):
            if not part.is_dir():
                part.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in its name
        if getattr(error, "errno", None) in FULL_DISK:
            raise
        raise FolderError(
            found=f"the folder {str(part)!r} can't be made ({describe_system(error)})",
            needed="a folder that this user may make and write to",
            next_step="check [engine] folder and [audit] url, and who owns the folder above it",
        ) from None


def describe_system(error: OSError | ValueError) -> str:
    """Return what the system says of a file, without its path.

    >>> describe_system(FileNotFoundError(2, "No such file or directory", "/a/b"))
    'No such file or directory'
    """
    return getattr(error, "strerror", None) or str(error)


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file; a new one is closed to other users."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, PRIVATE))


def write_durably(path: Path, content: bytes) -> None:
    """Write a file, closed to other users, and wait until the disk has it."""
    with open_private(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of the files in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str, *, mode: int = PRIVATE, durable: bool = True) -> None:
    """Write a new file next to `path`, then rename it: readers see the old or the new one, whole.

    Args:
        path: the file to replace; its folder exists.
        text: all of its content, written as UTF-8.
        mode: permissions of the new file, less what the umask takes away.
        durable: wait until the disk has it, so that the file is also whole after the machine lost
            power; False if a lost file can be made again.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_once(path: Path, text: str) -> None:
    """Write a whole file, closed to other users, or none; one that is there stays as it is."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first: its file counts
            os.link(temporary, path)
    finally:
        temporary.unlink()
