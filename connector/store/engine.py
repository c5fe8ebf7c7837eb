"""The SQL audit store: connecting, transactions, and its clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, InternalError, NoSuchModuleError, OperationalError

from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.extras import repair_command
from ringfence.connector.store.dialects import DIALECTS, Dialect

URLS = " or ".join(dialect.example_url for dialect in DIALECTS.values())

_CANONICAL = json.JSONEncoder(
    allow_nan=False, sort_keys=True, separators=(",", ":"), ensure_ascii=False
)


class Store:
    """A connection pool to the store; every write happens inside `transaction()`."""

    def __init__(self, engine: Engine, dialect: Dialect) -> None:
        self.engine = engine
        self.dialect = dialect

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a write transaction; it commits at the end and rolls back on an error."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except (OperationalError, InternalError) as error:
            raise self._unreachable(error) from None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that only reads; on SQLite it never waits."""
        try:
            with self.engine.connect().execution_options(ringfence_read=True) as connection:
                yield connection
        except (OperationalError, InternalError) as error:
            raise self._unreachable(error) from None

    @contextmanager
    def at_one_moment(self) -> Iterator[Store]:
        """Open a store for reading in which all queries see one state, whatever others write."""
        with self.reading() as connection:
            self.hold_state(connection)
            yield _HeldStore(self, connection)

    def hold_state(self, connection: Connection) -> None:
        """Make all queries of a transaction that begins see one state."""
        self.dialect.hold_state(connection)

    def now_ns(self, connection: Connection) -> int:
        """Return the database's own time, the only clock that leases trust."""
        return int(connection.execute(text(self.dialect.clock)).scalar_one())

    def end_when_silent(self, connection: Connection, seconds: float) -> None:
        """Make the database end this transaction when its client is silent for so long."""
        self.dialect.end_when_silent(connection, seconds)

    def make_place(self) -> None:
        """Make the place of the tables, such as SQLite's file; just connecting never does."""
        self.dialect.make_place(self.engine.url)

    def is_missing(self) -> bool:
        """Whether the place of the tables, such as SQLite's file, is not there."""
        return self.dialect.missing(self.engine.url) is not None

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _unreachable(self, error: OperationalError | InternalError) -> StoreError:
        url = self.engine.url
        return self.dialect.missing(url) or StoreError(
            found=f"the audit store {url.render_as_string(hide_password=True)} "
            f"doesn't work: {str(error.orig).strip()}",
            needed="a reachable database that this user may write",
            next_step="check [audit] url and RINGFENCE_AUDIT_PASSWORD, then: ringfence doctor",
        )


class _HeldStore(Store):
    """A store whose readings are one transaction."""

    def __init__(self, store: Store, connection: Connection) -> None:
        super().__init__(store.engine, store.dialect)
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection

    def hold_state(self, connection: Connection) -> None:
        """Do nothing: the state is held already."""

    @contextmanager
    def at_one_moment(self) -> Iterator[Store]:
        yield self


def open_store(url: str, password: str | None = None) -> Store:
    """Connect to `url`; a password comes separately and never shows in a log or an error."""
    try:
        address = make_url(url)
        dialect = _dialect_of(address)
        if password is not None:
            address = address.set(password=password)
        engine = _create_engine(address, dialect)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(found=f"[audit] url can't be read: {error}", needed=URLS) from None
    dialect.set_up(engine)
    return Store(engine, dialect)


def dumps(value: Any) -> str:
    """Return canonical JSON: sorted, compact, and never NaN or infinity."""
    return _CANONICAL.encode(value)


def _dialect_of(address: URL) -> Dialect:
    if address.password is not None:
        raise ConfigError(
            found="[audit] url holds a password",
            needed="a URL without it; drivers print URLs into logs and errors",
            next_step="set RINGFENCE_AUDIT_PASSWORD instead",
        )
    name = address.get_backend_name()
    if name not in DIALECTS:
        raise ConfigError(found=f"[audit] url is for {name}", needed=URLS)
    return DIALECTS[name]


def _create_engine(address: URL, dialect: Dialect) -> Engine:
    try:
        return create_engine(address, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise ConfigError(
            found=f"the driver for [audit] url is not installed ({error.name})",
            needed=dialect.driver,
            next_step=f"pip install 'ringfence[{dialect.extra}]'",
        ) from None
    except ImportError as error:  # psycopg without the library that it calls
        reason = (str(error).splitlines() or [""])[0]
        raise ConfigError(
            found=f"the driver for [audit] url is installed, but can't be imported ({reason})",
            needed=dialect.driver,
            next_step=repair_command(dialect.extra),
        ) from None
