"""The audit chain: every HMAC covers the entry before it, with a key the database never has."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, text

from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.tables import audit
from ringfence.connector.store.trail.actor import current_actor

MIN_KEY_CHARS = 16


def chain_key(configured: str | None, folder: Path) -> bytes:
    """Return the configured key, else a random one kept in `folder` that only we can read.

    A key that was not there before is made for an empty chain alone: `require_first_key`.
    """
    if configured:
        if len(configured) < MIN_KEY_CHARS:
            raise ConfigError(
                found=f"RINGFENCE_AUDIT_KEY has {len(configured)} characters",
                needed=f"at least {MIN_KEY_CHARS}; a shorter key can be guessed",
                next_step="python -c 'import secrets; print(secrets.token_hex(32))'",
            )
        return configured.encode()
    path = folder / "audit.key"
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_key(path)
    key = path.read_text().strip().encode()
    if not key:
        raise StoreError(
            found=f"{path} is empty",
            needed="the key of the audit chain",
            next_step="restore the file from a backup; if nothing was scored yet, delete it",
        )
    return key


def require_first_key(
    connection: Connection, project: str, configured: str | None, folder: Path
) -> None:
    """Refuse to go on without the key where a chain exists: a new one would fit none of it."""
    if configured or (folder / "audit.key").exists():
        return
    last = newest_entry(connection, project)
    if last is not None:
        raise StoreError(
            found=f"the audit chain of project {project!r} has {last.n} entries, but its key is "
            f"not here: RINGFENCE_AUDIT_KEY is not set and {folder / 'audit.key'} is missing",
            needed="the key that sealed the chain; a new one would fit none of its entries",
            next_step="restore audit.key from a backup or set RINGFENCE_AUDIT_KEY, then: "
            "ringfence verify",
        )


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
    """Add an entry with its time and actor inside the caller's transaction; return its hash.

    Raise `StoreError` where the newest entry was sealed with another key, or changed: two machines
    that share the store but not the key would break the chain for good.
    """
    last = newest_entry(connection, project)
    if last and not fits(last, key):
        raise StoreError(
            found=f"entry {last.n} of the audit chain does not fit this machine's key",
            needed="the same RINGFENCE_AUDIT_KEY (or audit.key file) on every machine",
            next_step="bring the key here that sealed the chain, then: ringfence verify",
        )
    n, prev = (last.n + 1, last.hash) if last else (1, "")
    written = {"at_ns": _now_ns(connection), "actor": current_actor()}  # older entries have neither
    body = dumps({"n": n, "project": project, "kind": kind, **written, **facts})
    entry = seal(key, prev, body)
    connection.execute(insert(audit).values(project=project, n=n, body=body, prev=prev, hash=entry))
    return entry


def _now_ns(connection: Connection) -> int:
    """Return the database's time: `Store.now_ns`, for whoever has a connection alone."""
    return int(connection.execute(text(DIALECTS[connection.dialect.name].clock)).scalar_one())


def head(connection: Connection, project: str) -> tuple[int, str] | None:
    """Return number and hash of the newest entry."""
    last = newest_entry(connection, project)
    return (int(last.n), str(last.hash)) if last else None


def newest_entry(connection: Connection, project: str) -> Any:
    """Return the row of the newest entry; None in an empty chain."""
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
        if not sound or not fits(row, key):
            return expected
        prev, expected = row.hash, expected + 1
    return None


def fits(row: Any, key: bytes) -> bool:
    """Whether an entry was sealed with this key, and not changed since."""
    return hmac.compare_digest(row.hash, seal(key, row.prev, row.body))
