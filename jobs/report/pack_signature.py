"""The signature of an audit pack: over the chain's end and the hashes of all files.

    head.json       number and hashes of the chain's newest entry, hash of SHA256SUMS, public key
    head.json.sig   Ed25519 signature of the bytes of head.json
    public_key.pem  the public key, as openssl reads it
    head.json.tsr   optional: what a time-stamping authority answered (RFC 3161)

These four are not in SHA256SUMS, whose hash they hold.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.audit_chain.signature import SigningKey, as_pem, recorded_key
from ringfence.connector.store.engine import Store, dumps
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.signing_keys import signing_keys
from ringfence.jobs.report.pack_archive import PackArchive
from ringfence.jobs.report.pack_rows import ChainEnd
from ringfence.jobs.report.time_stamp import fetch_time_stamp

HEAD, SIGNATURE, PUBLIC_KEY, STAMP = (
    "head.json", "head.json.sig", "public_key.pem", "head.json.tsr",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signer:
    """The key that signs a pack, and the authority that stamps it, if any."""

    key: SigningKey
    authority: str | None = None

    @property
    def files(self) -> set[str]:
        """Names of the files that a signature adds to a pack."""
        names = {HEAD, SIGNATURE, PUBLIC_KEY}
        return names if self.authority is None else names | {STAMP}


def find_signer(store: Store, settings: Settings, authority: str | None) -> Signer | None:
    """Return what signs a pack; None in a project that never had a signing key.

    `ConfigError` where the key is missing, open to others or another one than the chain names.
    """
    with store.reading() as connection:
        recorded = recorded_key(connection, settings.project)
    if recorded is None:
        if authority is not None:
            raise ConfigError(
                found="--time-stamp, but the project has no signing key yet",
                needed="a signed head that the authority can stamp",
                next_step="ringfence key new",
            )
        return None
    keys = signing_keys(settings)
    key = keys.read()
    if key is None or key.public != recorded.public:
        state = "is missing" if key is None else "holds another key than the chain names"
        raise ConfigError(
            found=f"{keys.file} {state}",
            needed=f"the private half of key {recorded.public[:16]}…, with which packs are signed",
            next_step="restore the file from a backup, or: ringfence key new; without a "
            "signature: ringfence report --pack audit.zip --unsigned",
        )
    return Signer(key, authority)


def write_signature(
    archive: PackArchive, project: str, end: ChainEnd, sums: str, signer: Signer
) -> None:
    """Sign the end of the chain and the hashes of all files."""
    head = {
        "project": project,
        "entries": end.entries,
        "hmac_head": end.hmac,
        "chain_sha256": end.keyless,
        "sums_sha256": hashlib.sha256(sums.encode()).hexdigest(),
        "public_key": signer.key.public,
    }
    text = (dumps(head) + "\n").encode()
    archive.add_bytes(HEAD, text)
    archive.add_bytes(SIGNATURE, signer.key.sign(text))
    archive.add_bytes(PUBLIC_KEY, as_pem(signer.key.public).encode())
    if signer.authority is not None:
        archive.add_bytes(STAMP, fetch_time_stamp(signer.authority, text))
