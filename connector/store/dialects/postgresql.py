"""PostgreSQL: a server of its own, for several machines that share one audit store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, Connection, Double, Table, cast, func
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


COLUMNS = "SELECT * FROM {0} AS shown LIMIT 0"
PLAN = "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM {0} AS shown"

# triggers that are switched off count as changed; those of foreign keys are internal, and are
# listed where somebody switched them off
TRIGGERS = """
SELECT CASE WHEN t.tgisinternal THEN 'a switched off reference of ' || c.relname
            ELSE 'the trigger ' || t.tgname || ' on ' || c.relname END,
       concat_ws('; ', t.tgtype, t.tgenabled, p.proname, p.prosrc, pg_get_expr(t.tgqual, t.tgrelid))
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%(relations)s)
  AND NOT (t.tgisinternal AND t.tgenabled = 'O')
UNION ALL
SELECT 'the rule ' || r.rulename || ' on ' || c.relname, pg_get_ruledef(r.oid)
FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%(relations)s)
  AND r.rulename <> '_RETURN'
UNION ALL
SELECT 'row security on ' || c.relname, ''
FROM pg_class AS c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%(relations)s)
  AND c.relrowsecurity
"""
BEFORE_ANY_EDIT = 2 + 8 + 16 + 32  # bits of tgtype: before; delete, update, truncate; no row


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

    def json_length(self, column: Any) -> Any:
        """Parse the text first."""
        return func.json_array_length(cast(column, JSON))

    def json_number(self, column: Any, name: str) -> Any:
        """Parse the text first."""
        return cast(func.json_extract_path_text(cast(column, JSON), name), Double)

    def relation_sizes(
        self, connection: Connection, max_scanned_bytes: float
    ) -> list[tuple[str, str, int]]:
        """Query the catalogue; TOAST data counts to its table."""
        del max_scanned_bytes
        return [(row[0], row[1], int(row[2])) for row in connection.exec_driver_sql(SIZES)]

    def is_same_view(self, connection: Connection, name: str, query: str) -> bool:
        """Compare columns and plan: definitions that are written alike are planned alike.

        The text of a view is the server's own, another one in each of its versions.
        """
        return self._view_facts(connection, name) == self._view_facts(connection, f"({query})")

    def _view_facts(self, connection: Connection, source: str) -> tuple[Any, ...]:
        shown = COLUMNS.format(source)
        names = tuple(connection.exec_driver_sql(shown).keys())
        plan = connection.exec_driver_sql(PLAN.format(source)).scalars()
        return names, tuple(plan)

    def guards(self, connection: Connection, relations: Sequence[str]) -> dict[str, str]:
        """Return triggers, rules and row policies on our tables and views."""
        rows = connection.exec_driver_sql(TRIGGERS, {"relations": list(relations)})
        return {str(name): str(definition) for name, definition in rows}

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
    time_of_ns="to_timestamp({0} / 1000000000.0)",
    own_guards={
        "the trigger audit_append_only on audit": f"{BEFORE_ANY_EDIT}; O; ringfence_append_only; "
        " BEGIN RAISE EXCEPTION 'the audit chain is append-only'; END "
    },
)
