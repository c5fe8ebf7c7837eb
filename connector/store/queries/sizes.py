"""How much room the audit store's tables and their indexes take."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import metadata

MAX_SCANNED_BYTES = 4e9  # SQLite reads the whole file for it: seconds up to here


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table, or one of its indexes; a file that was not broken down has no `table`."""

    table: str
    index: str
    bytes: int


def table_sizes(store: Store, max_scanned_bytes: float = MAX_SCANNED_BYTES) -> list[TableSize]:
    """Return the sizes of the store's own tables and indexes, the largest first.

    A SQLite file of more than `max_scanned_bytes`, or one whose driver can't tell its parts, is one
    row without a table.
    """
    with store.reading() as connection:
        relations = store.dialect.relation_sizes(connection, max_scanned_bytes)
    ours = [TableSize(*row) for row in relations if not row[0] or row[0] in metadata.tables]
    return sorted(ours, key=lambda size: (-size.bytes, size.table, size.index))
