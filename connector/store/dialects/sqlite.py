"""SQLite: one file in the project's folder, for one machine.

Transactions begin with BEGIN IMMEDIATE, so that two writers never read the same state and then both
write; readers never wait (write-ahead log). Connecting never makes the file: a missing file must be
an error, not be replaced by an empty one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Table,
    event,
    insert,
    literal_column,
    select,
)
from sqlalchemy import column as sql_column
from sqlalchemy import table as sql_table
from sqlalchemy.exc import DBAPIError

from ringfence.connector.errors import StoreError
from ringfence.connector.files import PRIVATE, make_private_folder
from ringfence.connector.store.dialects.base import Dialect, rows_of

PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "busy_timeout=30000",
    "recursive_triggers=ON",
)

# Entries of an index that is sorted by p-values go to pages anywhere: with the usual 2 MB much of a
# large run's CPU time is spent on pages that leave and come back. Other connections keep 2 MB.
WRITERS_CACHE = "PRAGMA cache_size = -65536"
FILE_BYTES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
HAS_DBSTAT = "SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'"
SIZES = """
SELECT m.tbl_name, CASE m.type WHEN 'index' THEN m.name ELSE '' END, s.pgsize
FROM dbstat AS s JOIN sqlite_master AS m ON m.name = s.name
WHERE s.aggregate = TRUE
"""


VIEW = "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?"
TRIGGERS = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
APPEND_ONLY = (
    "CREATE TRIGGER audit_no_{0} BEFORE {1} ON audit "
    "BEGIN SELECT RAISE(ABORT, 'the audit chain is append-only'); END"
)
ODD_ROWS = "coalesce(sum({0}), 0)"
ODD = "{{0}} IS NOT NULL AND ({0})"
VALUES_BY_KIND = {
    "BOOLEAN": "typeof({0}) <> 'integer' OR {0} NOT IN (0, 1)",
    "BIGINT": "typeof({0}) <> 'integer'",
    "INTEGER": "typeof({0}) <> 'integer'",
    "TEXT": "typeof({0}) <> 'text'",
    "DOUBLE": "typeof({0}) <> 'real'",
}
"""What a value of a column is not, by the column's type: SQLite itself takes any value."""


class SQLite(Dialect):
    """SQLite through Python's own driver."""

    __slots__ = ()

    def set_up(self, engine: Engine) -> None:
        """Open the file without making it, set the pragmas, and begin transactions ourselves."""
        event.listen(engine, "do_connect", _connect)
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "begin", _begin)

    def make_place(self, url: URL) -> None:
        """Make the file where it is missing."""
        path = Path(url.database or "")
        make_private_folder(path.parent)
        path.touch(mode=PRIVATE)  # its write-ahead log gets the same permissions

    def missing(self, url: URL) -> StoreError | None:
        """Return the error of a file that isn't there."""
        path = Path(url.database or "")
        if path.exists():
            return None
        return StoreError(
            found=f"there is no audit store at {path}",
            needed="the file that was migrated",
            next_step="bring it back, or for a new project: ringfence migrate",
        )

    def relation_sizes(
        self, connection: Connection, max_scanned_bytes: float
    ) -> list[tuple[str, str, int]]:
        """Query dbstat, which reads every page; one sum if there are too many or it is missing."""
        total = int(connection.exec_driver_sql(FILE_BYTES).scalar_one())
        has_it = connection.exec_driver_sql(HAS_DBSTAT).scalar()
        if total > max_scanned_bytes or not has_it:
            return [("", "", total)]
        return [(row[0], row[1], int(row[2])) for row in connection.exec_driver_sql(SIZES)]

    def is_same_view(self, connection: Connection, name: str, query: str) -> bool:
        """Compare the text that the view was made with."""
        standing = connection.exec_driver_sql(VIEW, (name,)).scalar()
        return bool(standing == f"CREATE VIEW {name} AS {query}")

    def guards(self, connection: Connection, relations: Sequence[str]) -> dict[str, str]:
        """Return the triggers on our tables and views, by name and table."""
        ours = {name.lower() for name in relations}
        return {
            f"the trigger {name} on {table}": str(definition)
            for name, table, definition in connection.exec_driver_sql(TRIGGERS)
            if table.lower() in ours
        }

    def find_odd_values(
        self, connection: Connection, table: Table, *where: ColumnElement[bool]
    ) -> dict[str, int]:
        """Count values that the column's type does not have; one pass over the rows."""
        quote = connection.dialect.identifier_preparer.quote
        odd = {
            column.name: ODD.format(VALUES_BY_KIND[_kind_of(column)]).format(quote(column.name))
            for column in table.columns
        }
        sums: list[ColumnElement[Any]] = [
            literal_column(ODD_ROWS.format(condition)) for condition in odd.values()
        ]
        query = select(*sums).select_from(table).where(*where)
        counts = connection.execute(query).one()
        return {name: int(n) for name, n in zip(odd, counts, strict=True) if n}

    def insert_columns(
        self,
        connection: Connection,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        constants: Mapping[str, Any],
    ) -> None:
        """Give the driver tuples; SQLAlchemy's own way makes a dict and another tuple per row."""
        names = [*constants, *columns]
        statement = str(
            insert(sql_table(table.name, *map(sql_column, names))).compile(
                dialect=connection.dialect
            )
        )
        driver: Any = connection.connection.driver_connection
        try:
            driver.execute(WRITERS_CACHE).close()
            driver.executemany(statement, rows_of(columns, constants)).close()
        except sqlite3.Error as error:  # the driver's own: its errors come bare
            raise DBAPIError.instance(statement, None, error, sqlite3.Error) from error


SQLITE = SQLite(
    name="sqlite",
    clock="SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000000",
    json_text="json_quote",
    byte_order="BINARY",
    example_url="sqlite:///file",
    driver="Python's sqlite3",
    time_of_ns="datetime({0} / 1000000000, 'unixepoch')",
    own_guards={
        f"the trigger audit_no_{verb.lower()} on audit": APPEND_ONLY.format(verb.lower(), verb)
        for verb in ("UPDATE", "DELETE")
    },
)


def _kind_of(column: Column[Any]) -> str:
    return str(column.type).upper().partition(" ")[0]


def _connect(
    _dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]
) -> sqlite3.Connection:
    address = Path(arguments[0]).absolute().as_uri()
    opened: sqlite3.Connection = sqlite3.connect(f"{address}?mode=rw", uri=True, **options)
    return opened


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN would come too late
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    reading = connection.get_execution_options().get("ringfence_read")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
