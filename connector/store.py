"""The SQL audit store: connecting, its clock, and its version."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, InternalError, NoSuchModuleError, OperationalError

from ringfence.connector.errors import ConfigError, StoreError

NANOSECONDS = 1_000_000_000

_CLOCK = {
    "sqlite": "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000000",
    "postgresql": "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) * 1000",
}


class Store:
    """A connection pool to the store; every write happens inside `transaction()`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a write transaction; it commits at the end and rolls back on an error."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except (OperationalError, InternalError) as error:
            raise _unreachable(self.engine, error) from None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction for reading alone; on SQLite it waits for nobody."""
        try:
            with self.engine.connect().execution_options(ringfence_read=True) as connection:
                yield connection
        except (OperationalError, InternalError) as error:
            raise _unreachable(self.engine, error) from None

    def now_ns(self, connection: Connection) -> int:
        """Return the database's own time, the only clock that leases trust."""
        return int(connection.execute(text(_CLOCK[connection.dialect.name])).scalar_one())

    def end_when_silent(self, connection: Connection, seconds: float) -> None:
        """Let PostgreSQL end this transaction when its client is silent for so long.

        A frozen process would keep the lease's row locked, and its successor out, for ever. SQLite
        has nothing of the kind: there others wait until the process goes on or is killed.
        """
        if connection.dialect.name == "postgresql":
            milliseconds = int(seconds * 1000)
            connection.exec_driver_sql(
                f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"
            )

    def make_place(self) -> None:
        """Make SQLite's file where it is missing; connecting alone never does.

        A file that vanished must be missed, not replaced by an empty one.
        """
        if (path := _sqlite_file(self.engine)) is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def open_store(url: str, password: str | None = None) -> Store:
    """Connect to `url`; a password comes separately and never shows in a log or an error."""
    try:
        parsed = make_url(url)
        if parsed.password is not None:
            raise ConfigError(
                found="[audit] url holds a password",
                needed="a URL without it; drivers print URLs into logs and errors",
                next_step="set RINGFENCE_AUDIT_PASSWORD instead",
            )
        if parsed.get_backend_name() not in _CLOCK:
            raise ConfigError(
                found=f"[audit] url is for {parsed.get_backend_name()}",
                needed="sqlite:///file or postgresql+psycopg://user@host/database",
            )
        if password is not None:
            parsed = parsed.set(password=password)
        engine = create_engine(parsed, hide_parameters=True)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(
            found=f"[audit] url can't be read: {error}",
            needed="sqlite:///file or postgresql+psycopg://user@host/database",
        ) from None
    except ModuleNotFoundError as error:
        raise ConfigError(
            found=f"the driver for [audit] url is not installed ({error.name})",
            needed="psycopg for PostgreSQL",
            next_step="pip install 'ringfence[postgres]'",
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "do_connect", _sqlite_connect)
        event.listen(engine, "connect", _sqlite_settings)
        event.listen(engine, "begin", _sqlite_begin)
    return Store(engine)


def dumps(value: Any) -> str:
    """Return canonical JSON: sorted, compact, and never NaN or infinity."""
    return json.dumps(
        value, allow_nan=False, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


def _sqlite_file(engine: Engine) -> Path | None:
    return Path(engine.url.database or "") if engine.dialect.name == "sqlite" else None


def _sqlite_connect(
    _dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]
) -> sqlite3.Connection:
    address = Path(arguments[0]).absolute().as_uri()
    opened: sqlite3.Connection = sqlite3.connect(f"{address}?mode=rw", uri=True, **options)
    return opened


def _sqlite_settings(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN would come too late
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "busy_timeout=30000",
        "recursive_triggers=ON",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _sqlite_begin(connection: Connection) -> None:
    reading = connection.get_execution_options().get("ringfence_read")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _unreachable(engine: Engine, error: OperationalError | InternalError) -> StoreError:
    path = _sqlite_file(engine)
    if path is not None and not path.exists():
        return StoreError(
            found=f"there is no audit store at {path}",
            needed="the file that was migrated",
            next_step="bring it back, or for a new project: ringfence migrate",
        )
    return StoreError(
        found=f"the audit store {engine.url.render_as_string(hide_password=True)} "
        f"doesn't work: {str(error.orig).strip()}",
        needed="a reachable database that this user may write",
        next_step="check [audit] url and RINGFENCE_AUDIT_PASSWORD, then: ringfence doctor",
    )
