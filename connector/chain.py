"""The audit chain: every HMAC covers the entry before it, with a key the database never has."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select

from ringfence.connector.errors import StoreError
from ringfence.connector.store import dumps
from ringfence.connector.tables import audit


def chain_key(configured: str | None, folder: Path) -> bytes:
    """Return the configured key, else a random one kept in `folder` that only we can read."""
    if configured:
        return configured.encode()
    path = folder / "audit.key"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write_key(path)
    key = path.read_text().strip().encode()
    if not key:
        raise StoreError(
            found=f"{path} is empty",
            needed="the key of the audit chain",
            next_step="restore the file from a backup; if nothing was scored yet, delete it",
        )
    return key


def _write_key(path: Path) -> None:
    """Write a whole key, or none: it appears under its name when it is on the disk."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first: its key counts
            os.link(temporary, path)
    finally:
        temporary.unlink()


def append(
    connection: Connection, project: str, key: bytes, kind: str, facts: dict[str, Any]
) -> str:
    """Add an entry inside the caller's transaction and return its hash.

    Raise `StoreError` where the newest entry was sealed with another key, or changed: two machines
    that share the store but not the key would break the chain for good.
    """
    last = _newest(connection, project)
    if last and not _fits(last, key):
        raise StoreError(
            found=f"entry {last.n} of the audit chain does not fit this machine's key",
            needed="the same RINGFENCE_AUDIT_KEY (or audit.key file) on every machine",
            next_step="bring the key here that sealed the chain, then: ringfence verify",
        )
    n, prev = (last.n + 1, last.hash) if last else (1, "")
    body = dumps({"n": n, "project": project, "kind": kind, **facts})
    entry = seal(key, prev, body)
    connection.execute(insert(audit).values(project=project, n=n, body=body, prev=prev, hash=entry))
    return entry


def head(connection: Connection, project: str) -> tuple[int, str] | None:
    """Return number and hash of the newest entry."""
    last = _newest(connection, project)
    return (int(last.n), str(last.hash)) if last else None


def _newest(connection: Connection, project: str) -> Any:
    newest_first = select(audit).where(audit.c.project == project).order_by(audit.c.n.desc())
    return connection.execute(newest_first.limit(1)).first()


def seal(key: bytes, prev: str, body: str) -> str:
    """Return HMAC-SHA256(key, prev + newline + body) as hex.

    >>> seal(b"key", "", "{}")[:8]
    'ccd29c04'
    """
    return hmac.new(key, f"{prev}\n{body}".encode(), hashlib.sha256).hexdigest()


def first_broken(connection: Connection, project: str, key: bytes) -> int | None:
    """Return the number of the first entry that doesn't fit the chain, or None where all do."""
    prev, expected = "", 1
    for row in connection.execute(
        select(audit).where(audit.c.project == project).order_by(audit.c.n)
    ):
        sound = row.n == expected and row.prev == prev
        if not sound or not _fits(row, key):
            return expected
        prev, expected = row.hash, expected + 1
    return None


def _fits(row: Any, key: bytes) -> bool:
    return hmac.compare_digest(row.hash, seal(key, row.prev, row.body))
