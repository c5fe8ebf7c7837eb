"""What the audit store needs of a SQL engine beyond SQL itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from sqlalchemy import URL, ColumnElement, Connection, Engine, Table, func, insert

from ringfence.connector.errors import StoreError


@dataclass(frozen=True, slots=True)
class Dialect:
    """A SQL engine; the methods are the parts where engines differ, and do nothing here.

    `name` is SQLAlchemy's, `clock` a query for the database's time in nanoseconds since 1970,
    `json_text` the function that writes a text as JSON, `byte_order` the collation that sorts texts
    as Python does, `example_url` what a configuration may say, `driver` and `extra` what must be
    installed; `time_of_ns` makes a time of the nanoseconds {0} in views, `own_guards` are the
    triggers that the migrations make, by name, as `guards` returns them.
    """

    name: str
    clock: str
    json_text: str
    byte_order: str
    example_url: str
    driver: str
    extra: str = ""
    time_of_ns: str = "{0}"
    own_guards: Mapping[str, str] = field(default_factory=dict)

    def set_up(self, engine: Engine) -> None:
        """Define how connections are opened, and how their transactions begin."""

    def make_place(self, url: URL) -> None:
        """Make the place of the tables where that is ours to make, such as a file."""

    def missing(self, url: URL) -> StoreError | None:
        """Return the error of a store that isn't there, or None where that isn't the reason."""

    def end_when_silent(self, connection: Connection, seconds: float) -> None:
        """Make the database end this transaction when its client is silent for so long.

        A frozen process would keep the lease's row locked, and its successor out, for ever. Where
        the database has nothing of the kind, others wait until the process goes on or is killed.
        """

    def hold_state(self, connection: Connection) -> None:
        """Make all queries of a transaction see one snapshot; here each has its own."""

    def json_length(self, column: Any) -> Any:
        """Return the length of a JSON list that stands in a column as text."""
        return func.json_array_length(column)

    def json_number(self, column: Any, name: str) -> Any:
        """Return the number under a plain name of a JSON object that stands in a column as text."""
        return func.json_extract(column, f'$."{name}"')

    def relation_sizes(
        self, connection: Connection, max_scanned_bytes: float
    ) -> list[tuple[str, str, int]]:
        """Return table, index ("" for the table itself) and bytes of all that takes room.

        An engine that would have to read a whole large file for it returns one sum, without a
        table.
        """
        del connection, max_scanned_bytes
        return []

    def is_same_view(self, connection: Connection, name: str, query: str) -> bool:
        """Whether the view `name` is that of `query`."""
        raise NotImplementedError

    def guards(self, connection: Connection, relations: Sequence[str]) -> dict[str, str]:
        """Return what acts when rows of the relations are written: name to definition."""
        raise NotImplementedError

    def find_odd_values(
        self, connection: Connection, table: Table, *where: ColumnElement[bool]
    ) -> dict[str, int]:
        """Return how many values of each column are none of its type; most engines refuse them.

        With `where` only the rows that it chooses are read.
        """
        del connection, table, where
        return {}

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
