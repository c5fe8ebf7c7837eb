"""Where the audit chain's key is: the environment, or a file; and what a rotation leaves.

    RINGFENCE_AUDIT_KEY                    counts before any file
    <folder>/projects/<project>/audit.key  the project's own, written by `ringfence rekey`
    <folder>/audit.key                     made with the first entry; shared by its projects
    …/audit.key.next                       a rotation that was interrupted

A rotation writes the next key's file, then the chain's entry, then renames the file. After a crash
the chain tells which of the two keys sealed its newest entry.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from ringfence.connector.errors import StoreError
from ringfence.connector.files import make_private_folder, sync_folder, write_atomically
from ringfence.connector.store import chain
from ringfence.connector.store.tables import model, run

KEY_FILE = "audit.key"
NEXT_KEY_FILE = "audit.key.next"


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the key of one project's chain may be: in its own folder, or in the store's."""

    configured: str | None
    folder: Path
    project_folder: Path

    @property
    def file(self) -> Path:
        """The file that counts where no key is configured."""
        folder_file = self.project_folder / KEY_FILE
        return folder_file if folder_file.exists() else self.folder / KEY_FILE

    @property
    def next_file(self) -> Path:
        """The file of a rotation that is in progress or was interrupted."""
        return self.project_folder / NEXT_KEY_FILE

    @property
    def is_here(self) -> bool:
        """Whether there is a key, so that none must be made."""
        return bool(self.configured) or self.file.exists() or self.next_file.exists()

    def read(self, newest: Any) -> bytes:
        """Return the key that sealed the row `newest`, else the one that counts; make no file."""
        if not self.configured and newest is not None:
            waiting = _read_file(self.next_file)
            if waiting is not None and chain.fits(newest, waiting):
                return waiting
        return chain.chain_key(self.configured, self.file.parent)


def current_key(connection: Connection, project: str, source: KeySource) -> bytes:
    """Return the chain's key; an empty record gets a first one, where none is configured."""
    require_first_key(connection, project, source)
    return source.read(chain.newest_entry(connection, project))


def require_first_key(connection: Connection, project: str, source: KeySource) -> None:
    """Refuse to go on without the key where a record exists: a new one would fit none of it."""
    if source.is_here:
        return
    last = chain.newest_entry(connection, project)
    if last is None and not _has_record(connection, project):
        return
    length = "no entries any more" if last is None else f"{last.n} entries"
    raise StoreError(
        found=f"the audit chain of project {project!r} has {length}, but its key is not here: "
        f"RINGFENCE_AUDIT_KEY is not set and {source.folder / KEY_FILE} is missing",
        needed="the key that sealed the chain; a new one would fit none of its entries",
        next_step="restore audit.key from a backup or set RINGFENCE_AUDIT_KEY, then: "
        "ringfence verify",
    )


def write_next_key(source: KeySource) -> bytes:
    """Write a random key next to the current one, and wait until the disk has it."""
    make_private_folder(source.project_folder)
    key = secrets.token_hex(32)
    write_atomically(source.next_file, key)
    sync_folder(source.project_folder)
    return key.encode()


def settle_next_key(connection: Connection, project: str, source: KeySource) -> None:
    """Finish or undo a rotation that was interrupted; the caller holds the lease.

    The next key becomes the current one if the chain's newest entry was sealed with it, and is
    removed if the old key still counts. If neither fits, someone changed the entry: both stay.
    """
    waiting = _read_file(source.next_file)
    newest = chain.newest_entry(connection, project)
    if waiting is None or newest is None:
        return
    if chain.fits(newest, waiting):
        source.next_file.replace(source.project_folder / KEY_FILE)
        sync_folder(source.project_folder)
    elif source.file.exists() and chain.fits(newest, source.read(None)):
        source.next_file.unlink()


def _has_record(connection: Connection, project: str) -> bool:
    """Whether SQL has runs or models: then there was a chain, and someone emptied it."""
    tables = (run, model)
    queries = (select(table.c.project).where(table.c.project == project) for table in tables)
    return any(connection.execute(query.limit(1)).first() is not None for query in queries)


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_text().strip().encode() or None
    except FileNotFoundError:
        return None
