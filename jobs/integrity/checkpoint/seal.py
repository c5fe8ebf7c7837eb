"""`ringfence verify` and the scheduled job: verify, and seal a checkpoint if that passed.

A checkpoint is an entry of the chain under the lease, so whoever only reads, or has no signing key,
leaves none; the next verification then checks the same again.
"""

from __future__ import annotations

from dataclasses import replace

from ringfence.connector.errors import ConfigError, RingfenceError
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.signature import SigningKey, recorded_key
from ringfence.connector.store.checkpoint.entries import (
    Checkpoint,
    record_checkpoint,
    refusing_readers,
)
from ringfence.jobs.integrity.verify import Verification, run_sealable_verification
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.telemetry.traced_run import traced


@traced("verify")
def verify_and_seal(
    workspace: Workspace,
    progress: Progress = no_progress,
    *,
    with_py2neo: bool = False,
    full: bool = False,
    full_days: float | None = None,
) -> Verification:
    """Verify since the newest checkpoint or everything, and seal a checkpoint if it passed."""
    checked = run_sealable_verification(
        workspace, with_py2neo=with_py2neo, full=full, full_days=full_days, progress=progress
    )
    done = checked.verification
    if done.problems or checked.checkpoint is None:
        return done
    try:
        return replace(done, sealed=_seal(workspace, checked.checkpoint, progress))
    except RingfenceError as error:
        note = f"no checkpoint was sealed: {error.found}"
        return replace(done, notes=(*done.notes, note))


def _seal(workspace: Workspace, checkpoint: Checkpoint, progress: Progress) -> int:
    key = _signing_key(workspace)
    with refusing_readers(), write_session(workspace, progress) as session:
        return record_checkpoint(session.writer, checkpoint, key)


def _signing_key(workspace: Workspace) -> SigningKey:
    """Return the private key that counts; an error where it is not here."""
    with workspace.store.reading() as connection:
        recorded = recorded_key(connection, workspace.project)
    key = workspace.signing_keys.read()
    if recorded is None or key is None or key.public != recorded.public:
        where = "the project has no signing key" if recorded is None else (
            f"{workspace.signing_keys.file} does not hold the signing key that the chain names"
        )  # fmt: skip
        raise ConfigError(
            found=where,
            needed="the private key that packs and checkpoints are signed with",
            next_step="restore the file from a backup, or: ringfence key new",
        )
    return key
