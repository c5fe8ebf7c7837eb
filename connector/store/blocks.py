"""Rows in blocks: long results are read by key, long lists are written in parts.

A block is read in a transaction of its own, so that work on it for minutes (writes to Neo4j,
queries of the graph) keeps no transaction open in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Row, Select, Table

from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.engine import Store

ROWS_PER_STATEMENT = 5_000

T = TypeVar("T")


def read_blocks(
    store: Store, query: Select[Any], key: Column[str], rows: int
) -> Iterator[list[Row[Any]]]:
    """Yield the rows of `query` in blocks of at most `rows`, in the order of its column `key`."""
    last = ""
    while True:
        with store.reading() as connection:
            block = list(connection.execute(query.where(key > last).order_by(key).limit(rows)))
        if not block:
            return
        yield block
        last = block[-1]._mapping[key]


def insert_columns(
    connection: Connection,
    table: Table,
    columns: Mapping[str, Sequence[Any]],
    constants: Mapping[str, Any],
) -> None:
    """Write rows that are given as columns by the engine's fastest way, inside the transaction."""
    DIALECTS[connection.dialect.name].insert_columns(connection, table, columns, constants)


def split(items: Sequence[T], size: int = ROWS_PER_STATEMENT) -> Iterator[Sequence[T]]:
    """Yield a list in parts that fit one SQL statement.

    >>> list(split([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for start in range(0, len(items), size):
        yield items[start : start + size]
