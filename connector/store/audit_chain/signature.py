"""The signing key: an Ed25519 key pair, with whose public half a stranger checks a pack.

    <folder>/projects/<project>/signing.key        the private key, for this user alone
    <folder>/projects/<project>/signing.key.next   a rotation that was interrupted

The chain has the public key, in the entry of the training that made the first one or in an entry of
its own; so it is known since when a key counts. A rotation writes the next key's file, then the
entry, then renames the file, as that of the chain's own key does. The entry has the old key's
signature of the new public key. After a crash the chain tells which of the two counts.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from ringfence.connector.errors import ConfigError
from ringfence.connector.files import make_private_folder, sync_folder, write_atomically
from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import ChainEntry
from ringfence.connector.store import chain
from ringfence.connector.store.writer import Writer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_FILE = "signing.key"
NEXT_KEY_FILE = "signing.key.next"
KIND = "signing key"
FIELD = "signing_key"
SEALED_MARK = f'"{FIELD}":{{'
KEY_BYTES = 32
OTHERS_MAY_READ = 0o077
PEM_PREFIX = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: an Ed25519 public key follows


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; shown nowhere."""

    private: bytes = field(repr=False)

    @property
    def public(self) -> str:
        """The public key as hex."""
        return self._key().public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self._key().sign(message)

    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.private)


@dataclass(frozen=True, slots=True)
class RecordedKey:
    """A public key as the chain has it: since which entry, and in whose place."""

    entry: int
    at_ns: int | None
    public: str
    was: str | None
    signature: str | None


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """Where a project's signing key is; `folder` is the project's own."""

    folder: Path

    @property
    def file(self) -> Path:
        """The file of the key that counts."""
        return self.folder / KEY_FILE

    @property
    def next_file(self) -> Path:
        """The file of a rotation that is in progress or was interrupted."""
        return self.folder / NEXT_KEY_FILE

    @property
    def is_usable(self) -> bool:
        """Whether the file is there and holds a key that others could not read."""
        try:
            return self.read() is not None
        except ConfigError:
            return False

    def read(self) -> SigningKey | None:
        """Return the key; None where its file is missing, `ConfigError` where it can't be used."""
        return _read_key(self.file)

    def write_next(self) -> SigningKey:
        """Write a random key next to the current one, and wait until the disk has it."""
        make_private_folder(self.folder)
        key = SigningKey(secrets.token_bytes(KEY_BYTES))
        write_atomically(self.next_file, key.private.hex())
        sync_folder(self.folder)
        return key

    def settle(self, recorded: RecordedKey | None) -> None:
        """Finish or undo a rotation that was interrupted; the caller holds the lease."""
        waiting = _read_key(self.next_file)
        if waiting is None:
            return
        if recorded is not None and recorded.public == waiting.public:
            self.next_file.replace(self.file)
        else:
            self.next_file.unlink()
        sync_folder(self.folder)


def recorded_key(connection: Connection, project: str, after: int = 0) -> RecordedKey | None:
    """Return the public key that counts, by the entries after one; None where they name none."""
    row = chain.newest_containing(connection, project, SEALED_MARK, after)
    return None if row is None else _recorded(row.n, json.loads(row.body))


def recorded_keys(entries: Sequence[ChainEntry]) -> Iterator[RecordedKey]:
    """Yield every public key that a chain names, oldest first."""
    return (_recorded(entry.n, entry.facts) for entry in entries if FIELD in entry.facts)


def key_facts(key: SigningKey, before: RecordedKey | None, old: SigningKey | None) -> JsonObject:
    """Return what a chain entry says of a new key; the `old` one signs it, where it is here."""
    is_old = old is not None and before is not None and old.public == before.public
    signature = old.sign(bytes.fromhex(key.public)).hex() if old is not None and is_old else None
    was = None if before is None else before.public
    return {FIELD: {"public_key": key.public, "was": was, "signature": signature}}


def record_key(writer: Writer, facts: JsonObject) -> int:
    """Write the entry with which a key counts; return its number."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        writer.begin(connection)
        chain.append(connection, project, writer.key, KIND, facts)
        newest = chain.head(connection, project)
    return 0 if newest is None else newest[0]


def fits(public: str, signature: str, message: bytes) -> bool:
    """Whether a signature, as hex, is that of a public key over a message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def as_pem(public: str) -> str:
    """Return a public key, given as hex, in the form that openssl reads.

    >>> as_pem(64 * "0").splitlines()[1]
    'MCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
    """
    import base64

    text = base64.b64encode(PEM_PREFIX + bytes.fromhex(public)).decode()
    return f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n"


def _recorded(n: int, facts: Any) -> RecordedKey:
    said = facts[FIELD]
    return RecordedKey(n, facts.get("at_ns"), said["public_key"], said["was"], said["signature"])


def _read_key(path: Path) -> SigningKey | None:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
    if os.name == "posix" and mode & OTHERS_MAY_READ:
        raise ConfigError(
            found=f"{path} is open to other users of this machine (mode {mode & 0o777:04o})",
            needed="a signing key that this user alone can read; others may have signed with it",
            next_step=f"chmod 600 {path}, then ringfence key new",
        )
    try:
        private = bytes.fromhex(text)
    except ValueError:
        private = b""
    if len(private) != KEY_BYTES:
        raise ConfigError(
            found=f"{path} holds no signing key",
            needed=f"{2 * KEY_BYTES} hexadecimal digits",
            next_step="restore the file from a backup, or delete it and: ringfence key new",
        )
    return SigningKey(private)
