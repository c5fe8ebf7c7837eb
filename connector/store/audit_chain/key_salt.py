"""Salted hashes of node keys, and the chain's digests over rows that have these in place of keys.

A pack may have salted hashes in place of keys. Whoever gets it can compare its rows with the chain
only if the chain has a digest over rows with the hashes as well. The salt is made with the first
such digest and stays: it stands in SQL, where the keys are anyway, and the chain has its digest. It
is in no pack, and is handed over apart.

Digests are over rows in the order of their own hashes: the order of the keys would tell something
about them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from json.encoder import encode_basestring

import numpy as np
from sqlalchemy import Connection, insert, select

from ringfence.connector.errors import StoreError
from ringfence.connector.json_types import JsonObject, JsonValue
from ringfence.connector.store.audit_chain.prediction_json import PredictionJson
from ringfence.connector.store.audit_chain.tables import key_salt
from ringfence.connector.store.chain import newest_containing
from ringfence.connector.store.engine import dumps

SALT_BYTES = 32
HASH_BYTES = 32
FIELD = "salted"
SEALED_MARK = f'"{FIELD}":{{'


class RowSetDigest:
    """One hash over a set of rows, whatever their order; holds 32 bytes per row.

    >>> both, turned = RowSetDigest(), RowSetDigest()
    >>> for digest, rows in ((both, ([1], [2])), (turned, ([2], [1]))):
    ...     for row in rows:
    ...         digest.add(dumps(row))
    >>> both.hexdigest() == turned.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._rows = bytearray()

    def add(self, text: str) -> None:
        """Add a row as canonical JSON."""
        self._rows += hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def hexdigest(self) -> str:
        """Return the hash."""
        rows = np.frombuffer(bytes(self._rows), f"S{HASH_BYTES}")
        return hashlib.sha256(np.sort(rows).tobytes()).hexdigest()


class SaltedPredictions:
    """The digest over a run's predictions with salted keys, block by block."""

    def __init__(self, salt: bytes) -> None:
        self._salt, self._digest = salt, RowSetDigest()

    def update(self, block: PredictionJson) -> None:
        """Add the next block."""
        bands = {band: dumps(band) for band in set(block.bands)}
        columns = zip(
            block.keys, block.classes, block.p_values, block.scores, block.degrees, block.bands,
            strict=True,
        )  # fmt: skip
        for key, classes, p_values, scores, degree, band in columns:
            name = encode_basestring(salted_key(self._salt, key))
            self._digest.add(f"[{name},{classes},{p_values},{scores},{degree},{bands[band]}]")

    def facts(self, sampled: Sequence[str] = ()) -> JsonObject:
        """Return what the entry of a run says of it; `sampled` are the keys of its audit sample."""
        facts: JsonObject = {"salt": salt_id(self._salt), "predictions": self._digest.hexdigest()}
        if not sampled:
            return facts
        return facts | salted_facts(self._salt, "sample", [(key, []) for key in sampled])


def salted_key(salt: bytes, key: str) -> str:
    """Return SHA-256(salt + key) as hex: the name of a node in a pack with salted keys.

    >>> salted_key(b"salt", "i:7")[:8]
    '11c68390'
    """
    return hashlib.sha256(salt + key.encode("utf-8", "surrogatepass")).hexdigest()


def salt_id(salt: bytes) -> str:
    """Return the hash that names a salt and does not give it away."""
    return hashlib.sha256(b"ringfence key salt\n" + salt).hexdigest()


def salted_facts(salt: bytes, name: str, rows: list[tuple[str, list[JsonValue]]]) -> JsonObject:
    """Return what an entry says of rows, given as key and further columns, under a name."""
    digest = RowSetDigest()
    for key, columns in rows:
        digest.add(dumps([salted_key(salt, key), *columns]))
    return {"salt": salt_id(salt), name: digest.hexdigest()}


def read_salt(connection: Connection, project: str) -> bytes | None:
    """Return the project's salt; None before the first digest with salted keys."""
    query = select(key_salt.c.salt).where(key_salt.c.project == project)
    text = connection.execute(query).scalar()
    return None if text is None else str(text).encode()


def current_salt(connection: Connection, project: str) -> bytes:
    """Return the salt, inside the transaction of an entry that has a digest with salted keys.

    The first one is made; `StoreError` where it is not the one that the chain has used so far.
    """
    salt = read_salt(connection, project)
    newest = newest_containing(connection, project, SEALED_MARK)
    if newest is None:
        return _make_salt(connection, project) if salt is None else salt
    if salt is None or f'"salt":"{salt_id(salt)}"' not in newest.body:
        state = "is gone from" if salt is None else "was changed in"
        raise StoreError(
            found=f"the salt of node keys of project {project!r} {state} the table key_salt",
            needed="the salt that the audit chain's digests were made with",
            next_step="ringfence verify, then restore the table from a backup",
        )
    return salt


def _make_salt(connection: Connection, project: str) -> bytes:
    fresh = secrets.token_hex(SALT_BYTES)
    connection.execute(insert(key_salt).values(project=project, salt=fresh))
    return fresh.encode()
