"""Files for this user's eyes alone; some appear under their name only when they are whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

PRIVATE = 0o600  # read and written by this user alone
PRIVATE_FOLDER = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, closed to other users.

    Folders that exist stay as they are: whoever opened one to others had a reason.
    """
    for part in reversed((folder, *folder.parents)):
        if not part.is_dir():
            part.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


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
    """Write beside `path`, then rename: readers find the old file or the new one, never a part.

    Args:
        path: the file to replace; its folder exists.
        text: all of its content, written as UTF-8.
        mode: permissions of the new file, less what the umask takes away.
        durable: wait until the disk has it, so that the file is also whole after the machine lost
            power; False where a lost file costs nothing but work.
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
