"""The signing key of a project: the first one, which a training makes, and `ringfence key new`.

A rotation has three steps, of which the middle one decides: the new key's file is written, the
chain gets its entry, the file takes the old one's place. What the old key signed stays verifiable:
the chain, and every pack, has its public half.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store import migrate
from ringfence.connector.store.audit_chain.signature import (
    RecordedKey,
    SigningKeys,
    as_pem,
    key_facts,
    record_key,
    recorded_key,
)
from ringfence.connector.times import format_time
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.project.folders import project_folder
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public key that counts, since which chain entry, and where its private half is.

    `was` is the key before it; `file` is None where the private key is not on this machine.
    """

    project: str
    public_key: str
    pem: str
    entry: int
    since: str
    was: str | None
    file: str | None


def signing_keys(settings: Settings) -> SigningKeys:
    """Return where the signing key of a project is."""
    return SigningKeys(project_folder(settings.engine.folder, settings.project))


def make_first_key(workspace: Workspace) -> JsonObject:
    """Make the signing key of a project that never had one, under the lease.

    Return what the caller's chain entry says of it; nothing where the project has a key. The key
    counts once `settle_signing_key` finds the entry.
    """
    with workspace.store.reading() as connection:
        if recorded_key(connection, workspace.project) is not None:
            return {}
    return key_facts(signing_keys(workspace.settings).write_next(), None, None)


def run_new_signing_key(workspace: Workspace, progress: Progress = no_progress) -> PublicKey:
    """Make a signing key under the lease; it takes the place of the one before."""
    workspace.require_migrated()
    keys = workspace.signing_keys
    with write_session(workspace, progress) as session:
        with workspace.store.reading() as connection:
            before = recorded_key(connection, workspace.project)
        old = keys.read() if keys.is_usable else None
        facts = key_facts(keys.write_next(), before, old)
        fault_points.reach("next signing key written")
        record_key(session.writer, facts)
        fault_points.reach("signing key recorded")
        workspace.settle_signing_key()
    return read_public_key(workspace.settings)


def read_public_key(settings: Settings) -> PublicKey:
    """Return the public key that counts; `ConfigError` in a project that has none."""
    with open_audit(settings) as store:
        migrate.require_sql(store)
        with store.reading() as connection:
            recorded = recorded_key(connection, settings.project)
    if recorded is None:
        raise ConfigError(
            found=f"project {settings.project!r} has no signing key yet",
            needed="a key pair to sign audit packs with",
            next_step="ringfence key new",
        )
    return _public_key(settings, recorded)


def _public_key(settings: Settings, recorded: RecordedKey) -> PublicKey:
    keys = signing_keys(settings)
    key = keys.read()
    here = key is not None and key.public == recorded.public
    return PublicKey(
        settings.project,
        recorded.public,
        as_pem(recorded.public),
        recorded.entry,
        format_time(recorded.at_ns),
        recorded.was,
        str(keys.file) if here else None,
    )
