"""Rotation of the audit chain's key: an entry of its own, after which the old key is not needed.

The entry is sealed with the new key. It holds digests, without any key, over all entries before it,
in blocks: the new key alone is enough to tell that none of them was changed. The old key is not
enough to change any of them, since the digests are sealed with the new one.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from sqlalchemy import Connection

from ringfence.connector.errors import StoreError
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.digests import digest_block, digest_entries
from ringfence.connector.store.writer import Writer


def rotate_key(writer: Writer, new_key: bytes) -> int:
    """Add the entry that ends the old key and begins the new one; return its number.

    Raise `StoreError` where the chain does not fit the old key: a rotation would seal what someone
    changed.
    """
    project = writer.lease.project
    with writer.store.transaction() as connection:
        writer.begin(connection)
        entries = chain.read_entries(connection, project)
        broken = chain.broken_entry(entries, project, writer.key)
        if broken is not None:
            raise StoreError(
                found=f"entry {broken} of the audit chain does not fit this machine's key"
                f"{chain.describe_rotation(connection, project)}",
                needed="a chain that fits: the new key would seal what was changed",
                next_step="ringfence verify",
            )
        facts = {
            **digest_entries(entries),
            "old_key": key_id(writer.key),
            "new_key": key_id(new_key),
        }
        return chain.append_sealed(connection, project, new_key, chain.REKEYED, facts)


def key_id(key: bytes) -> str:
    """Return a short name of a key, which does not reveal the key."""
    return hmac.new(key, b"ringfence audit key", hashlib.sha256).hexdigest()[:16]


def is_sealed(connection: Connection, project: str, row: Any, key: bytes) -> bool:
    """Whether the entry `row` is as it was written: by its own seal, or by the last rotation's.

    Of the entries before a rotation, the block with this one is read.
    """
    if chain.fits(row, key):
        return True
    last = chain.newest_rotation(connection, project)
    if last is None or last.n <= row.n or not chain.fits(last, key):
        return False
    size = int(last.facts["block"])
    place = (row.n - 1) // size
    entries = chain.read_entries(connection, project, place * size + 1, (place + 1) * size)
    block = [entry for entry in entries if entry.n < last.n]
    return digest_block(block) == str(last.facts["digests"][place])
