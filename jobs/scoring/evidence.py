"""A digest of what was read of a node when it was evaluated: evidence, not identity.

Properties change while a node stays the same, so nothing is decided by it. An auditor who has the
node's columns as they were can show that the set was made from them.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import CLASSIFIED, Mirror
from ringfence.connector.mirror.raw_table import RawTable

EVIDENCE_BYTES = 16
ROWS_AT_ONCE = 1 << 16  # scratch memory stays small


def evidence_of(mirror: Mirror, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return a digest of key and columns of each of some classified nodes [n, EVIDENCE_BYTES]."""
    digests = np.empty((len(rows), EVIDENCE_BYTES), np.uint8)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        pairs = zip(mirror.keys.take(part.tolist()), _records(mirror, part), strict=True)
        joined = b"".join(_digest(key, record) for key, record in pairs)
        digests[start : start + len(part)] = np.frombuffer(joined, np.uint8).reshape(len(part), -1)
    return digests


def _digest(key: str, record: bytes) -> bytes:
    """BLAKE2b of the typed key, a NUL, and the node's columns.

    >>> _digest("i:7", b"[1.0]").hex() == _digest("i:8", b"[1.0]").hex()
    False
    """
    return hashlib.blake2b(key.encode() + b"\0" + record, digest_size=EVIDENCE_BYTES).digest()


def _records(mirror: Mirror, rows: NDArray[np.int64]) -> list[bytes]:
    """The columns as the mirror has them: JSON of raw values, or float32 numbers."""
    table = mirror.tables[CLASSIFIED]
    if isinstance(table, RawTable):
        return table.texts(mirror.places_of(rows))
    numbers = np.ascontiguousarray(mirror.feature_rows(rows), "<f4")
    return [numbers[place].tobytes() for place in range(len(rows))]
