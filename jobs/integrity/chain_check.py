"""Whether the audit chain fits and the rows that pages show are as it has them, in words."""

from __future__ import annotations

from ringfence.connector.store.audit_chain.integrity import record_snapshot
from ringfence.connector.store.checkpoint.entries import describe_newest
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.integrity.record_check import find_edits_of_shown_rows
from ringfence.jobs.project.audit_store import key_source

NOTHING_YET = (
    "Nothing is on record yet: the first entry of the audit chain comes with the first model. "
    "Run: ringfence train"
)


def chain_words(queries: ProjectQueries, settings: Settings) -> tuple[bool | None, str]:
    """Return True, False or None (the key is elsewhere, or there is nothing), and a sentence."""
    source = key_source(settings)
    if not (queries.chain_length() or queries.models() or queries.runs(last=1)):
        return None, NOTHING_YET
    if not source.is_here:
        length = queries.chain_length()
        return None, f"{length} chain entries, which can't be verified here: the key is elsewhere."
    with record_snapshot(queries.store, queries.project, source) as reader:
        record = reader.record()
    length = len(record.entries)
    if record.first_broken is not None:
        broken = f"chain entry {record.first_broken} of {length}"
        return False, f"BROKEN: {broken} does not fit{record.rotation}."
    edits = list(find_edits_of_shown_rows(record))
    if edits:
        more = f" and {len(edits) - 1} more" if len(edits) > 1 else ""
        return False, f"CHANGED: {edits[0]}{more}. To see all: ringfence verify"
    newest = describe_newest(record.entries)
    last = f" The last verification that passed, {newest}." if newest else ""
    return True, (
        f"All {length} entries of the audit chain fit: nothing was changed afterwards in runs, "
        "coverage, models and alarms. ringfence verify compares predictions and classes too."
        f"{last}"
    )
