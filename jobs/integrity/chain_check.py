"""Whether the audit chain fits and the rows that pages show are as it has them, in words."""

from __future__ import annotations

from ringfence.connector.store import chain
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.trail.integrity import record_snapshot
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.record_check import find_edits_of_shown_rows
from ringfence.jobs.project.audit_store import secret_text


def chain_words(queries: ProjectQueries, settings: Settings) -> tuple[bool | None, str]:
    """Return True, False or None (the key is elsewhere), and a sentence."""
    key = secret_text(settings.audit.key)
    if key is None and not (settings.engine.folder / "audit.key").exists():
        length = queries.chain_length()
        return None, f"{length} chain entries, which can't be verified here: the key is elsewhere."
    secret = chain.chain_key(key, settings.engine.folder)
    with record_snapshot(queries.store, queries.project) as reader:
        record = reader.record(secret)
    length = len(record.entries)
    if record.first_broken is not None:
        broken = f"chain entry {record.first_broken} of {length}"
        return False, f"BROKEN: {broken} does not fit the one before it."
    edits = list(find_edits_of_shown_rows(record))
    if edits:
        more = f" and {len(edits) - 1} more" if len(edits) > 1 else ""
        return False, f"CHANGED: {edits[0]}{more}. To see all: ringfence verify"
    return True, (
        f"All {length} entries of the audit chain fit: nothing was changed afterwards in runs, "
        "coverage, models and alarms. ringfence verify compares predictions and classes too."
    )
