"""A table as people see it: named columns with formats; the same table is HTML, CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.times import format_time

Format = Literal[
    "text", "int", "num", "percent", "p", "threshold", "time", "run", "hash", "verdict", "state"
]
Rows = list[dict[str, Any]]
SMALLEST_P = 0.0001


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, the key of the value, and how it is written."""

    title: str
    key: str
    format: Format = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a name, under which it downloads."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Rows
    empty: str = "Nothing yet."


@dataclass(frozen=True, slots=True)
class TableView:
    """How a table comes to be: its name and columns, and the function that reads its rows."""

    name: str
    title: str
    columns: tuple[Column, ...]
    read_rows: Callable[[ProjectQueries], Rows]
    empty: str = "Nothing yet."

    def read(self, queries: ProjectQueries) -> Table:
        """Return the table with its rows."""
        return Table(self.name, self.title, self.columns, self.read_rows(queries), self.empty)


def cell(value: Any, format_: Format) -> str:
    """Return a value as a person reads it.

    >>> cell(0.9051, "percent"), cell(None, "threshold"), cell(12345, "int"), cell(8e-6, "p")
    ('90.5 %', '−∞', '12,345', '< 0.0001')
    """
    if value is None:
        return "−∞" if format_ == "threshold" else "–"
    if format_ == "percent":
        return f"{100 * value:.1f} %"
    if format_ == "p":
        return f"{value:.3g}" if value >= SMALLEST_P else f"< {SMALLEST_P:g}"
    if format_ in {"num", "threshold"}:
        return f"{value:.4g}"
    if format_ == "int":
        return f"{value:,}"
    if format_ == "time":
        return format_time(value)
    return str(value)


def as_csv(table: Table) -> str:
    """Return the table's raw values; text that a spreadsheet would run gets a quote before it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.title for column in table.columns])
    for row in table.rows:
        writer.writerow([csv_cell(row.get(column.key), column.format) for column in table.columns])
    return out.getvalue()


def csv_cell(value: Any, format_: Format = "text") -> Any:
    """Return a value as a CSV file has it.

    >>> csv_cell("=1+1"), csv_cell(None), csv_cell(0.5)
    ("'=1+1", '', 0.5)
    """
    if format_ == "time" and value is not None:
        return format_time(value)
    if isinstance(value, str) and value[:1] in set("=+-@\t\r"):
        return "'" + value
    return "" if value is None else value
