"""`ringfence rekey`: a new key for the audit chain, as an entry of its own.

Three steps, of which the middle one decides: the new key's file is written, the chain gets its
entry, the file takes the old one's place. A process that dies in between leaves a state that the
next writing command settles (`connector.store.audit_chain.keys`). A configured key has no
file: the entry alone is written, and every machine gets the new key by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.keys import KEY_FILE, settle_next_key, write_next_key
from ringfence.connector.store.audit_chain.rotation import key_id, rotate_key
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.audit_store import secret_text
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RekeyReport:
    """What `ringfence rekey` did: the entry's number, the key's short names, where the key is now.

    `entry` is None where the chain had the new key already. `file` is None where the new key is
    configured; `removed` is the old key's file, where it went.
    """

    entry: int | None
    old_key: str | None
    new_key: str
    file: str | None
    removed: str | None


def run_rekey(workspace: Workspace, progress: Progress = no_progress) -> RekeyReport:
    """Rotate the chain's key under the lease; what was sealed before stays verifiable."""
    workspace.require_migrated()
    configured = _configured_key(workspace)
    if configured is not None and _is_sealed_with(workspace, configured):
        return RekeyReport(None, None, key_id(configured), None, None)
    with write_session(workspace, progress) as session:
        if configured is None:
            return _rotate_file(workspace, session.writer)
        entry = rotate_key(session.writer, configured)
        return RekeyReport(entry, key_id(session.writer.key), key_id(configured), None, None)


def _configured_key(workspace: Workspace) -> bytes | None:
    """The key that comes next, where one is configured; None where a file holds it."""
    audit = workspace.settings.audit
    new = secret_text(audit.new_key)
    if new:
        return chain.chain_key(new, workspace.settings.engine.folder)
    if audit.key is not None:
        raise ConfigError(
            found="RINGFENCE_AUDIT_KEY is set, but RINGFENCE_AUDIT_NEW_KEY is not",
            needed="the key that comes next, in the environment of this command",
            next_step="RINGFENCE_AUDIT_NEW_KEY=… ringfence rekey; then give it to every machine as "
            "RINGFENCE_AUDIT_KEY",
        )
    return None


def _is_sealed_with(workspace: Workspace, key: bytes) -> bool:
    with workspace.store.reading() as connection:
        newest = chain.newest_entry(connection, workspace.project)
    return newest is not None and chain.fits(newest, key)


def _rotate_file(workspace: Workspace, writer: Writer) -> RekeyReport:
    source = workspace.key_source
    old_file = source.file
    new_key = write_next_key(source)
    fault_points.reach("next key written")
    entry = rotate_key(writer, new_key)
    fault_points.reach("key rotated")
    with workspace.store.reading() as connection:
        settle_next_key(connection, workspace.project, source)
    removed = _remove_old_file(workspace) if old_file != source.file else None
    names = key_id(writer.key), key_id(new_key)
    return RekeyReport(entry, *names, str(source.project_folder / KEY_FILE), removed)


def _remove_old_file(workspace: Workspace) -> str | None:
    """Remove the folder's key that this project had, unless other projects there may use it too."""
    source = workspace.key_source
    beside = [
        path for path in source.project_folder.parent.iterdir() if path != source.project_folder
    ]
    old = source.folder / KEY_FILE
    if beside or not old.exists():
        return None
    old.unlink()
    return str(old)
