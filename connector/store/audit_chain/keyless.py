"""The keyless chain: a SHA-256 over all entries, which a stranger computes without any key.

An HMAC says something only to the holder of its key. Beside it each entry has, inside the body that
the HMAC seals, the keyless hash over all entries before it:

    hash(0) = ""
    hash(n) = SHA-256(hash(n - 1) + newline + prev + newline + SHA-256(body) + newline + HMAC)

The body enters by its own SHA-256, so that a pack may withhold a body that names nodes and the
chain can still be followed. Entries of older versions have no such field; the first entry that has
one covers all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Protocol

FIELD = "chain_sha256"
_SEALED = re.compile(rf'"{FIELD}":"([0-9a-f]{{64}})"')


class SealedText(Protocol):
    """An entry as its row has it."""

    @property
    def prev(self) -> str:
        """The HMAC of the entry before."""

    @property
    def body(self) -> str:
        """The canonical text."""

    @property
    def hash(self) -> str:
        """The HMAC."""


def next_hash(before: str, entry: SealedText) -> str:
    """Return the keyless hash up to and with an entry."""
    body = hashlib.sha256(entry.body.encode("utf-8", "surrogatepass")).hexdigest()
    return hashlib.sha256(f"{before}\n{entry.prev}\n{body}\n{entry.hash}".encode()).hexdigest()


def hash_entries(entries: Iterable[SealedText]) -> str:
    """Return the keyless hash of a chain from its first entry on; "" where there is none.

    >>> hash_entries([])
    ''
    """
    head = ""
    for entry in entries:
        head = next_hash(head, entry)
    return head


def sealed_hash(body: str) -> str | None:
    """Return the hash that an entry holds of all before it; None in entries of older versions.

    Bodies are canonical JSON: a text inside one has its quotes escaped and can't look like this.

    >>> sealed_hash('{"chain_sha256":"' + 64 * "a" + '","n":1}') == 64 * "a", sealed_hash("{}")
    (True, None)
    """
    match = _SEALED.search(body)
    return None if match is None else match.group(1)


def find_wrong_hashes(entries: Iterable[SealedText]) -> Iterator[int]:
    """Yield the places, from 1 on, of entries whose hash of all before them is another one."""
    head = ""
    for place, entry in enumerate(entries, 1):
        if place > 1 and sealed_hash(entry.body) not in (None, head):
            yield place
        head = next_hash(head, entry)
