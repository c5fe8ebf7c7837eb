"""Which checkpoint a verification may go on from, or why everything has to be compared.

A checkpoint that can't be relied on is left aside, and never mended: then all is compared, and a
new one sealed.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence import __version__
from ringfence.connector.store.audit_chain.integrity import AuditRecord
from ringfence.connector.store.audit_chain.keyless import hash_entries
from ringfence.connector.store.checkpoint.entries import (
    KIND,
    Checkpoint,
    SealedCheckpoint,
    newest_checkpoint,
    why_not_trusted,
)
from ringfence.jobs.auditing.alarms.rules import RECORD
from ringfence.jobs.integrity.checkpoint.draw import Sample

NS_PER_DAY = 86_400_000_000_000
FULL, SINCE = "full", "since"


@dataclass(frozen=True, slots=True)
class Base:
    """The checkpoint to go on from, or why there is none."""

    sealed: SealedCheckpoint | None
    reason: str = ""


def find_base(record: AuditRecord, project: str) -> Base:
    """Return the newest checkpoint, if it can be relied on."""
    if record.first_broken is not None:
        return Base(None, "the audit chain is broken")
    alarm = record.alarms.get(RECORD)
    if alarm is not None and alarm["state"] == "firing":
        return Base(None, f"the alarm {RECORD} fires: an earlier verification did not pass")
    sealed = newest_checkpoint(record.entries)
    if sealed is None:
        unread = any(entry.kind == KIND for entry in record.entries)
        state = "a checkpoint that can't be read" if unread else "no checkpoint yet"
        return Base(None, f"the chain has {state}")
    reason = why_not_trusted(sealed, record.entries, project, __version__)
    return Base(sealed) if reason is None else Base(None, reason)


def is_full_due(base: Base, now_ns: int, full_days: float) -> bool:
    """Whether everything was compared so long ago that it is due again."""
    sealed = base.sealed
    return sealed is None or now_ns - sealed.checkpoint.full_ns >= full_days * NS_PER_DAY


def make_checkpoint(
    record: AuditRecord, base: Base, now_ns: int, predictions: int, sample: Sample
) -> Checkpoint | None:
    """Return what a verification that passed may seal; None where there is nothing on record.

    Args:
        record: what it read.
        base: the checkpoint that it went on from; none where everything was compared.
        now_ns: when it read.
        predictions: how many stood on record.
        sample: what was drawn of older runs.
    """
    if not record.entries:
        return None
    newest, sealed = record.entries[-1], base.sealed
    return Checkpoint(
        entry=newest.n,
        hash=newest.hash,
        chain_sha256=hash_entries(record.entries),
        how=FULL if sealed is None else SINCE,
        base=None if sealed is None else sealed.n,
        full_entry=newest.n if sealed is None else sealed.checkpoint.full_entry,
        full_ns=now_ns if sealed is None else sealed.checkpoint.full_ns,
        software=__version__,
        runs=len(record.run_columns),
        predictions=predictions,
        drawn=len(sample.runs),
        of=sample.of,
        nonce=sample.nonce,
    )
