"""PostgreSQL: a server of its own, for several machines that share one audit store."""

from __future__ import annotations

from sqlalchemy import Connection

from ringfence.connector.store.dialects.base import Dialect


class PostgreSQL(Dialect):
    """PostgreSQL through psycopg."""

    __slots__ = ()

    def end_when_silent(self, connection: Connection, seconds: float) -> None:
        """Set the timeout of idle transactions for this one."""
        milliseconds = int(seconds * 1000)
        connection.exec_driver_sql(
            f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"
        )


POSTGRESQL = PostgreSQL(
    name="postgresql",
    clock="SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) * 1000",
    example_url="postgresql+psycopg://user@host/database",
    driver="psycopg for PostgreSQL",
    extra="postgres",
)
