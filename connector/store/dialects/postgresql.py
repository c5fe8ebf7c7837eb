"""PostgreSQL: a server of its own, for several machines that share one audit store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from ringfence.connector.store.dialects.base import Dialect, rows_of

SIZES = """
SELECT t.relname, '', pg_table_size(t.oid) FROM pg_class AS t
WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
UNION ALL
SELECT t.relname, i.relname, pg_relation_size(i.oid)
FROM pg_index AS x
JOIN pg_class AS t ON t.oid = x.indrelid JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
"""


class PostgreSQL(Dialect):
    """PostgreSQL through psycopg."""

    __slots__ = ()

    def end_when_silent(self, connection: Connection, seconds: float) -> None:
        """Set the timeout of idle transactions for this one."""
        milliseconds = int(seconds * 1000)
        connection.exec_driver_sql(
            f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"
        )

    def hold_state(self, connection: Connection) -> None:
        """Read from one snapshot: by default every statement has its own."""
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def relation_sizes(
        self, connection: Connection, max_scanned_bytes: float
    ) -> list[tuple[str, str, int]]:
        """Ask the catalogue; long values that are kept apart count to their table."""
        del max_scanned_bytes
        return [(row[0], row[1], int(row[2])) for row in connection.exec_driver_sql(SIZES)]

    def insert_columns(
        self,
        connection: Connection,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        constants: Mapping[str, Any],
    ) -> None:
        """Write by COPY in PostgreSQL's binary form."""
        names = [*constants, *columns]
        types = [table.c[name].type.compile(connection.dialect).lower() for name in names]
        quote = connection.dialect.identifier_preparer.quote
        quoted = ", ".join(quote(name) for name in names)
        statement = f"COPY {quote(table.name)} ({quoted}) FROM STDIN (FORMAT BINARY)"
        driver: Any = connection.connection.driver_connection
        driver_error: type[Exception] = connection.dialect.loaded_dbapi.Error
        try:
            with driver.cursor() as cursor, cursor.copy(statement) as copy:
                copy.set_types(types)
                for row in rows_of(columns, constants):
                    copy.write_row(row)
        except driver_error as error:  # the cursor is the driver's own: its errors come bare
            raise DBAPIError.instance(statement, None, error, driver_error) from error


POSTGRESQL = PostgreSQL(
    name="postgresql",
    clock="SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) * 1000",
    json_text="to_json",
    byte_order="C",
    example_url="postgresql+psycopg://user@host/database",
    driver="psycopg for PostgreSQL",
    extra="postgres",
)
