"""What the audit store asks of a SQL engine beyond SQL itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, insert

from ringfence.connector.errors import StoreError


@dataclass(frozen=True, slots=True)
class Dialect:
    """A SQL engine; the methods are the parts where engines differ, and do nothing here.

    `name` is SQLAlchemy's, `clock` a query for the database's time in nanoseconds since 1970,
    `json_text` the function that writes a text as JSON, `byte_order` the collation that sorts texts
    as Python does, `example_url` what a configuration may say, `driver` and `extra` what must be
    installed.
    """

    name: str
    clock: str
    json_text: str
    byte_order: str
    example_url: str
    driver: str
    extra: str = ""

    def set_up(self, engine: Engine) -> None:
        """Say how connections are opened, and how their transactions begin."""

    def make_place(self, url: URL) -> None:
        """Make the place of the tables where that is ours to make, such as a file."""

    def missing(self, url: URL) -> StoreError | None:
        """Return the error of a store that isn't there, or None where that isn't the reason."""

    def end_when_silent(self, connection: Connection, seconds: float) -> None:
        """Let the database end this transaction when its client is silent for so long.

        A frozen process would keep the lease's row locked, and its successor out, for ever. Where
        the database has nothing of the kind, others wait until the process goes on or is killed.
        """

    def hold_state(self, connection: Connection) -> None:
        """Let all queries of a transaction that begins see one state; here each one does."""

    def relation_sizes(
        self, connection: Connection, max_scanned_bytes: float
    ) -> list[tuple[str, str, int]]:
        """Return table, index ("" for the table itself) and bytes of all that takes room.

        An engine that has to read a whole file for it says one sum, of no table, for a larger one.
        """
        del connection, max_scanned_bytes
        return []

    def insert_columns(
        self,
        connection: Connection,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        constants: Mapping[str, Any],
    ) -> None:
        """Write many rows that are given as columns; `constants` have one value in all of them.

        An engine that has a faster way than one statement for many parameters takes it.
        """
        names = [*constants, *columns]
        rows = [dict(zip(names, row, strict=True)) for row in rows_of(columns, constants)]
        if rows:
            connection.execute(insert(table), rows)


def rows_of(
    columns: Mapping[str, Sequence[Any]], constants: Mapping[str, Any]
) -> Iterator[tuple[Any, ...]]:
    """Yield rows whose first values are the constants.

    >>> list(rows_of({"key": ["a", "b"]}, {"seq": 1}))
    [(1, 'a'), (1, 'b')]
    """
    (length,) = {len(values) for values in columns.values()}
    fixed = (repeat(value, length) for value in constants.values())
    return zip(*fixed, *columns.values(), strict=True)
