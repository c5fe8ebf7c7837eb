"""Keyless digests over entries of the audit chain, which a rotation's entry holds.

There are at most MAX_BLOCKS of them, so that a change is found in its block: in a chain of up to
MAX_BLOCKS entries, in its very entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import ChainEntry

MAX_BLOCKS = 1_000


def digest_entries(entries: Sequence[ChainEntry]) -> JsonObject:
    """Return what a rotation's entry says of all entries before it."""
    size = max(1, -(-len(entries) // MAX_BLOCKS))
    return {"entries": len(entries), "block": size, "digests": list(_digests(entries, size))}


def first_changed(entries: Sequence[ChainEntry], facts: Mapping[str, Any]) -> int | None:
    """Return the number of the first entry that is not as a rotation's entry has it."""
    size, digests = max(1, int(facts["block"])), list(_digests(entries, int(facts["block"])))
    for place, sealed in enumerate(facts["digests"]):
        if place >= len(digests) or digests[place] != sealed:
            return place * size + 1
    return None if len(entries) == facts["entries"] else int(facts["entries"]) + 1


def digest_block(entries: Sequence[ChainEntry]) -> str:
    """Return one hash over some entries as they stand."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(f"{entry.prev}\n{entry.body}\n{entry.hash}\n".encode())
    return digest.hexdigest()


def _digests(entries: Sequence[ChainEntry], size: int) -> Iterator[str]:
    for start in range(0, len(entries), size):
        yield digest_block(entries[start : start + size])
