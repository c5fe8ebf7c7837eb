"""The store's tables, views and triggers against the migrations, and values against their types."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.errors import StoreError
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.engine import Store
from ringfence.connector.store.schema.differences import (
    find_missing_parts,
    find_odd_values,
    find_schema_differences,
)


def require_tables(store: Store) -> None:
    """Raise `StoreError` where tables or columns are gone, which would end any other check."""
    with store.reading() as connection:
        missing = find_missing_parts(connection)
    if missing:
        raise StoreError(
            found="; ".join(missing),
            needed="the tables that the migrations made; someone changed the schema",
            next_step="restore the audit store from a backup (docs/reliability.md, Answers)",
        )


def find_schema_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield what of the schema is not as the migrations make it, then values of a wrong type.

    All projects of the store share its schema, so every project's verification names it.
    """
    del record
    differences = list(find_schema_differences(reader.connection))
    yield from differences
    if not differences:
        yield from find_odd_values(reader.connection)
