"""Numbers of rows in the chain: each is sealed once, and none is below one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ringfence.connector.store.audit_chain.integrity import AuditRecord

NUMBERED = {
    "mark": ("mark", "n"),
    "alarm_event": ("event",),
    "comparison": ("comparison", "n"),
    "activation": ("activation", "n"),
}
"""Where an entry has the number of a row that it seals, by table."""


def find_number_edits(record: AuditRecord) -> Iterator[str]:
    """Yield numbers that two entries sealed: the first row was deleted, and its number used again.

    New rows get numbers from the chain (`chain.next_number`), so an honest record has none.
    """
    for table, field in NUMBERED.items():
        counts = Counter(_numbers(record, field))
        for number in sorted(number for number, count in counts.items() if count > 1):
            times = f"sealed {counts[number]} times"
            yield f"{table} {number}: {times}: a row of that number was deleted"
    for number in sorted(number for number in record.alarm_events if number < 1):
        yield f"alarm_event {number}: the row was never recorded by an audit"


def _numbers(record: AuditRecord, field: tuple[str, ...]) -> Iterator[int]:
    for entry in record.entries:
        value: Any = entry.facts
        for name in field:
            if not isinstance(value, dict) or name not in value:
                break
            value = value[name]
        else:
            yield int(value)
