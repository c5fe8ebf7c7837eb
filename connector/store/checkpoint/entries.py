"""Checkpoints: what a verification that passed leaves in the chain, signed with the signing key.

An entry `verified` names another entry, with both of its hashes, and says that everything up to it
was as it was decided. Since every entry holds a hash of all before it, the two hashes stand for all
of them, and by the digests in them for all rows. The entry is sealed with the chain's key as every
one; the signature beside it says that whoever wrote it had the signing key as well.

    checkpoint = newest_checkpoint(record.entries)
    reason = why_not_trusted(checkpoint, record.entries, project, software)  # None: it is trusted
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy.exc import DBAPIError

from ringfence.connector.errors import StoreError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import ChainEntry
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain import keyless
from ringfence.connector.store.audit_chain.signature import SigningKey, fits, recorded_keys
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.writer import Writer
from ringfence.connector.times import format_time

KIND = "verified"
FIELD = "checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint says.

    entry: the newest entry that the verification read, whose hashes are `hash` and `chain_sha256`.
    how: `full`, or `since` where older rows were only drawn from. base: the entry of the checkpoint
    that this one went on from, None where everything was compared. full_ns: when everything was
    compared last, up to `full_entry`. software: the version of ringfence that compared.
    runs, predictions: how many stood on record. drawn, of: how many older runs were drawn, and from
    how many. nonce: what they were drawn by, with the chain's key.
    """

    entry: int
    hash: str
    chain_sha256: str
    how: str
    base: int | None
    full_entry: int
    full_ns: int
    software: str
    runs: int
    predictions: int
    drawn: int = 0
    of: int = 0
    nonce: str = ""

    def message(self, project: str) -> bytes:
        """Return what is signed."""
        return dumps({"project": project, **asdict(self)}).encode()


@dataclass(frozen=True, slots=True)
class SealedCheckpoint:
    """A checkpoint with the number of its entry, when it was written, and its signature."""

    n: int
    at_ns: int
    checkpoint: Checkpoint
    public_key: str
    signature: str


def record_checkpoint(writer: Writer, checkpoint: Checkpoint, key: SigningKey) -> int:
    """Write the entry of a checkpoint; return its number."""
    project = writer.lease.project
    facts: JsonObject = {
        FIELD: asdict(checkpoint),
        "public_key": key.public,
        "signature": key.sign(checkpoint.message(project)).hex(),
    }
    with writer.store.transaction() as connection:
        writer.begin(connection)
        chain.append(connection, project, writer.key, KIND, facts)
        newest = chain.head(connection, project)
    return 0 if newest is None else newest[0]


@contextmanager
def refusing_readers() -> Iterator[None]:
    """Say in words that the user of the audit store may not write to it."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(
            found=f"the audit store can't be written: {error.orig}",
            needed="a SQL user that may write, for a checkpoint",
            next_step="ringfence verify, as the user that runs ringfence score",
        ) from error


def newest_checkpoint(entries: Sequence[ChainEntry]) -> SealedCheckpoint | None:
    """Return the newest checkpoint of a chain; None where there is none that can be read."""
    entry = next((entry for entry in reversed(entries) if entry.kind == KIND), None)
    if entry is None:
        return None
    try:
        return _sealed(entry.n, entry.facts)
    except (KeyError, TypeError, ValueError):
        return None


def describe(facts: Mapping[str, Any]) -> str:
    """Say in a line what an entry `verified` says.

    >>> describe({"checkpoint": {"how": "since", "entry": 40, "base": 31, "drawn": 2, "of": 9}})
    'verified up to entry 40, since the checkpoint of entry 31 with 2 of 9 older runs'
    """
    said = facts[FIELD]
    if said["how"] == "full":
        return f"verified in full up to entry {said['entry']}"
    since = f"since the checkpoint of entry {said['base']}"
    drawn = f"{said['drawn']} of {said['of']} older runs"
    return f"verified up to entry {said['entry']}, {since} with {drawn}"


def describe_newest(entries: Sequence[ChainEntry]) -> str:
    """Say when the chain's newest checkpoint was sealed and what it says; empty without one."""
    entry = next((entry for entry in reversed(entries) if entry.kind == KIND), None)
    if entry is None:
        return ""
    try:
        return f"{format_time(entry.at_ns)}: {describe(entry.facts)}"
    except (KeyError, TypeError):
        return f"entry {entry.n}, which can't be read"


def why_not_trusted(
    sealed: SealedCheckpoint, entries: Sequence[ChainEntry], project: str, software: str
) -> str | None:
    """Return why a checkpoint of a chain that fits can't be relied on; None where it can."""
    said = sealed.checkpoint
    place = said.entry - 1
    if not 0 <= place < sealed.n - 1 <= len(entries) or entries[place].hash != said.hash:
        return f"the checkpoint of entry {sealed.n} is about another chain"
    if keyless.hash_entries(entries[: said.entry]) != said.chain_sha256:
        return f"the checkpoint of entry {sealed.n} has another hash of the entries before it"
    keys = [key.public for key in recorded_keys(entries)]
    if not keys or keys[-1] != sealed.public_key:
        return f"the checkpoint of entry {sealed.n} was signed with another key than counts now"
    if not fits(sealed.public_key, sealed.signature, said.message(project)):
        return f"the signature of the checkpoint of entry {sealed.n} does not fit"
    if said.software != software:
        return (
            f"the checkpoint of entry {sealed.n} is of ringfence {said.software}, and this is "
            f"{software}"
        )
    return None


def _sealed(n: int, facts: Mapping[str, Any]) -> SealedCheckpoint:
    said = Checkpoint(**facts[FIELD])
    if not (isinstance(said.entry, int) and isinstance(said.full_ns, int)):
        raise TypeError(f"a checkpoint about entry {said.entry!r}")
    public, signature = str(facts["public_key"]), str(facts["signature"])
    return SealedCheckpoint(n, int(facts["at_ns"]), said, public, signature)
