"""Rows that nothing on record owns: no prediction, no entry of the chain, no number of its own."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.store.audit_chain import keyless
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.first_seen import KIND as SEEN
from ringfence.connector.store.first_seen import nodes_by_time
from ringfence.connector.store.schema.orphans import count_orphans


def find_unowned_rows(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield rows that no other check meets, because each begins at what owns a row."""
    for table, count in count_orphans(reader.connection, reader.project).items():
        yield f"{table}: {count} rows of nodes that no prediction stands for"
    if not _is_sealed_from_the_start(record):
        return
    if not any(record.bodies(SEEN)):
        times = nodes_by_time(reader.connection, reader.project)
        if count := sum(map(len, times.values())):
            yield f"first_seen: {count} rows, but no run recorded one"
    if not any(record.bodies("alarm")) and record.alarm_events:
        yield f"alarm_event: {len(record.alarm_events)} rows, but no audit recorded one"
    if not any(record.bodies("alarms")) and record.alarms:
        yield f"alarm: {len(record.alarms)} rows, but no audit recorded one"


def _is_sealed_from_the_start(record: AuditRecord) -> bool:
    """Whether the first entry is of a version that seals all of these rows."""
    return bool(record.entries) and keyless.FIELD in record.entries[0].facts
