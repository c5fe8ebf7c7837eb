"""What a stranger's check of a pack rests on: keyless chain, salt of node keys, signing keys."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.neo4j.write.fence import Anchor
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.audit_chain.key_salt import FIELD as SALTED
from ringfence.connector.store.audit_chain.key_salt import read_salt, salt_id
from ringfence.connector.store.audit_chain.keyless import find_wrong_hashes
from ringfence.connector.store.audit_chain.signature import RecordedKey, fits, recorded_keys


def find_keyless_edits(record: AuditRecord) -> Iterator[str]:
    """Yield entries whose keyless hash of all before them is another one.

    In a chain that is broken already it can't be told which of two entries is wrong.
    """
    if record.first_broken is None:
        for place in find_wrong_hashes(record.entries):
            n = record.entries[place - 1].n
            yield f"entry {n} of the chain: chain_sha256 is not the hash of the entries before it"


def find_salt_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Compare the salt with the digest that entries have of it; older versions had none."""
    sealed = [
        (entry.n, entry.facts[SALTED]["salt"]) for entry in record.entries if SALTED in entry.facts
    ]
    first = sealed[0][1] if sealed else None
    for n, name in sealed:
        if name != first:
            yield f"key_salt: entry {n} was made with another salt than the entries before it"
            break
    salt = read_salt(reader.connection, reader.project)
    if salt is None and first is not None:
        yield "key_salt: the project's row is gone"
    elif salt is not None and salt_id(salt) != first:
        yield "key_salt: salt is not the one that the chain's digests were made with"


def find_signing_edits(record: AuditRecord) -> Iterator[str]:
    """Yield entries of signing keys that do not follow from those before them."""
    before: str | None = None
    for key in recorded_keys(record.entries):
        if key.was != before:
            yield f"entry {key.entry} of the chain: its signing key follows another one"
        elif before is not None and not _is_signed_by(before, key):
            yield f"entry {key.entry} of the chain: the key before did not sign the new one"
        before = key.public


def find_anchored_key_edits(record: AuditRecord, anchor: Anchor | None) -> Iterator[str]:
    """Compare the public key in the graph with the chain's; a later one may be on its way."""
    if anchor is None:
        return
    keys = list(recorded_keys(record.entries))
    known = [key.public for key in keys if key.entry <= anchor.n]
    later = [key.public for key in keys if key.entry > anchor.n]
    expected = [known[-1] if known else None, *later]
    if anchor.public_key not in expected:
        yield "RingfenceFence: public_key is not the signing key that the chain names"


def _is_signed_by(before: str, key: RecordedKey) -> bool:
    """Whether the key before signed this one; a key that was lost could not."""
    return key.signature is None or fits(before, key.signature, bytes.fromhex(key.public))
