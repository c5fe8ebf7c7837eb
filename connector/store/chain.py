"""The audit chain: every HMAC covers the entry before it, with a key the database never has."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, text

from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.files import write_once
from ringfence.connector.json_types import JsonValue
from ringfence.connector.records import ChainEntry
from ringfence.connector.store.audit_chain import keyless
from ringfence.connector.store.audit_chain.actor import current_actor
from ringfence.connector.store.audit_chain.digests import first_changed
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.rows import chain_entry_from_row
from ringfence.connector.store.tables import audit, lease
from ringfence.connector.times import format_time

MIN_KEY_CHARS = 16
REKEYED = "rekeyed"
REKEYED_MARK = f'"kind":"{REKEYED}"'  # canonical JSON: no text inside a body can look like this


def chain_key(configured: str | None, folder: Path) -> bytes:
    """Return the configured key, else a random one kept in `folder` that only we can read.

    A key that was not there before is made for an empty record alone: `audit_chain.keys`.
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
        write_once(path, secrets.token_hex(32))
    key = path.read_text().strip().encode()
    if not key:
        raise StoreError(
            found=f"{path} is empty",
            needed="the key of the audit chain",
            next_step="restore the file from a backup; if nothing was scored yet, delete it",
        )
    return key


def append(
    connection: Connection, project: str, key: bytes, kind: str, facts: Mapping[str, JsonValue]
) -> None:
    """Add an entry with its time and actor inside the caller's transaction.

    Raise `StoreError` where the newest entry was sealed with another key, or changed: two machines
    that share the store but not the key would break the chain for good.
    """
    last = newest_entry(connection, project)
    if last and not fits(last, key):
        raise StoreError(
            found=f"entry {last.n} of the audit chain does not fit this machine's key"
            f"{describe_rotation(connection, project)}",
            needed="the same RINGFENCE_AUDIT_KEY (or audit.key file) on every machine",
            next_step="bring the key here that sealed the chain, then: ringfence verify",
        )
    append_sealed(connection, project, key, kind, facts)


def append_sealed(
    connection: Connection, project: str, key: bytes, kind: str, facts: Mapping[str, JsonValue]
) -> int:
    """Add an entry whatever key sealed the one before it; return its number."""
    last = newest_entry(connection, project)
    n, prev = (last.n + 1, last.hash) if last else (1, "")
    written = {  # entries of older versions have none of these
        "at_ns": _now_ns(connection),
        "actor": current_actor(),
        "lease": _lease_token(connection, project),
        keyless.FIELD: keyless_head(connection, project, last),
    }
    body = dumps({"n": n, "project": project, "kind": kind, **written, **facts})
    sealed = seal(key, prev, body)
    values = {"project": project, "n": n, "body": body, "prev": prev, "hash": sealed}
    connection.execute(insert(audit).values(**values))
    return int(n)


def keyless_head(connection: Connection, project: str, last: Any) -> str:
    """Return the keyless hash of all entries up to `last`, the newest one; "" before the first.

    The newest entry has the hash of those before it; after entries of an older version the whole
    chain is read, once.
    """
    if last is None:
        return ""
    before = keyless.sealed_hash(last.body)
    if before is not None:
        return keyless.next_hash(before, last)
    query = select(audit).where(audit.c.project == project).order_by(audit.c.n)
    return keyless.hash_entries(connection.execute(query))


def newest_rotation(connection: Connection, project: str) -> ChainEntry | None:
    """Return the entry of the key's last rotation; None where it never was rotated."""
    query = (
        select(audit)
        .where(audit.c.project == project, audit.c.body.contains(REKEYED_MARK))
        .order_by(audit.c.n.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else chain_entry_from_row(row)


def describe_rotation(connection: Connection, project: str) -> str:
    """Say when the key was rotated last, to help find the right one; empty if it never was."""
    entry = newest_rotation(connection, project)
    if entry is None:
        return ""
    when = "" if entry.at_ns is None else f" at {format_time(entry.at_ns)}"
    return f"; entry {entry.n} says that the key was rotated{when} by {entry.actor}"


def _lease_token(connection: Connection, project: str) -> int | None:
    query = select(lease.c.token).where(lease.c.project == project)
    return connection.execute(query).scalar()


def _now_ns(connection: Connection) -> int:
    """Return the database's time, as `Store.now_ns` does, for callers with a connection only."""
    return int(connection.execute(text(DIALECTS[connection.dialect.name].clock)).scalar_one())


def head(connection: Connection, project: str) -> tuple[int, str] | None:
    """Return number and hash of the newest entry."""
    last = newest_entry(connection, project)
    return (int(last.n), str(last.hash)) if last else None


def hash_at(connection: Connection, project: str, n: int) -> str | None:
    """Return the hash of entry `n`; None where there is no such entry."""
    query = select(audit.c.hash).where(audit.c.project == project, audit.c.n == n)
    return connection.execute(query).scalar()


def newest_entry(connection: Connection, project: str) -> Any:
    """Return the row of the newest entry; None in an empty chain."""
    newest_first = select(audit).where(audit.c.project == project).order_by(audit.c.n.desc())
    return connection.execute(newest_first.limit(1)).first()


def newest_of_kind(
    connection: Connection, project: str, kind: str, like: str = "%", unlike: str = ""
) -> Any:
    """Return the newest entry of a kind whose body is `like` one pattern and `unlike` another.

    Bodies are canonical JSON: a text inside one has its quotes escaped and can't look like this.
    """
    entries = select(audit).where(audit.c.project == project, audit.c.body.like(like))
    query = entries.where(audit.c.body.like(f'%"kind":"{kind}"%'), audit.c.body.not_like(unlike))
    return connection.execute(query.order_by(audit.c.n.desc()).limit(1)).first()


def newest_containing(connection: Connection, project: str, mark: str, after: int = 0) -> Any:
    """Return the newest entry after `after` whose body has a text of canonical JSON, or None."""
    query = select(audit).where(
        audit.c.project == project, audit.c.n > after, audit.c.body.contains(mark)
    )
    return connection.execute(query.order_by(audit.c.n.desc()).limit(1)).first()


def next_number(connection: Connection, project: str, table: Table, field: tuple[str, ...]) -> int:
    """Return the first number after the newest that the chain sealed which no row has.

    The number after the newest row would be given twice where somebody deleted that row, and the
    chain would have two entries for it: a deletion that nothing names.
    A row that nobody sealed does not stop a new one, and can't take its number either. In a chain
    without such numbers, as older versions wrote it, the newest row counts.

    Args:
        table: whose column `n` has the numbers.
        field: where entries that seal its rows have the number: names, from the outermost in.
    """
    last = newest_containing(connection, project, f'"{field[0]}":')
    if last is None:
        newest = select(func.max(table.c.n)).where(table.c.project == project)
        return max(0, int(connection.execute(newest).scalar() or 0)) + 1
    number = json.loads(last.body)
    for name in field:
        number = number[name]
    query = select(table.c.n).where(table.c.project == project, table.c.n > number)
    taken = set(connection.execute(query).scalars())
    number = int(number) + 1
    while number in taken:
        number += 1
    return number


def seal(key: bytes, prev: str, body: str) -> str:
    """Return HMAC-SHA256(key, prev + newline + body) as hex.

    >>> seal(b"key", "", "{}")[:8]
    'ccd29c04'
    """
    return hmac.new(key, f"{prev}\n{body}".encode(), hashlib.sha256).hexdigest()


def read_entries(
    connection: Connection, project: str, first: int | None = None, last: int | None = None
) -> tuple[ChainEntry, ...]:
    """Return the whole chain, or the entries from number `first` to `last`; oldest entry first."""
    query = select(audit).where(audit.c.project == project).order_by(audit.c.n)
    if first is not None:
        query = query.where(audit.c.n >= first)
    if last is not None:
        query = query.where(audit.c.n <= last)
    return tuple(chain_entry_from_row(row) for row in connection.execute(query))


def first_broken(connection: Connection, project: str, key: bytes) -> int | None:
    """Return the number of the first entry that doesn't fit the chain, or None where all do."""
    return broken_entry(read_entries(connection, project), project, key)


def broken_entry(entries: Sequence[ChainEntry], project: str, key: bytes) -> int | None:
    """Return the number of the first entry that doesn't fit the chain, or None where all do.

    Entries from the key's last rotation on are sealed with `key`; its entry has digests of those
    before it, whose key is gone.
    """
    start = max((place for place, e in enumerate(entries) if e.kind == REKEYED), default=0)
    broken = [_first_out_of_place(entries, project)]
    broken += [next((e.n for e in entries[start:] if not fits(e, key)), None)]
    if start and fits(entries[start], key):
        broken += [first_changed(entries[:start], entries[start].facts)]
    return min((n for n in broken if n is not None), default=None)


def _first_out_of_place(entries: Sequence[ChainEntry], project: str) -> int | None:
    """Return the first number whose entry is missing, is another one's, or follows another one."""
    prev = ""
    for expected, entry in enumerate(entries, 1):
        told = entry.facts.get("n"), entry.facts.get("project")
        if entry.n != expected or entry.prev != prev or told != (expected, project):
            return expected
        prev = entry.hash
    return None


def fits(row: Any, key: bytes) -> bool:
    """Whether an entry was sealed with this key, and not changed since."""
    return hmac.compare_digest(row.hash, seal(key, row.prev, row.body))
