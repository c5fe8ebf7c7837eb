"""A table as people see it: named columns with formats; the same table is HTML, CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.times import format_time

Format = Literal[
    "text",
    "int",
    "num",
    "percent",
    "p",
    "threshold",
    "time",
    "run",
    "model",
    "hash",
    "verdict",
    "state",
]
Cells = dict[str, Any]
"""A row's values by the key of their column."""

Rows = list[Cells]
SMALLEST_P = 0.0001
NUMERIC: tuple[Format, ...] = ("int", "num", "percent", "p", "threshold")


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, the key of the value, how it is written, and what it is in a sentence.

    An `extra` column is shown where a person chooses it; files have it always. `beside` is the key
    of a column that is never shown without this one, and this one never without it.
    """

    title: str
    key: str
    format: Format = "text"
    about: str = ""
    extra: bool = False
    beside: str | None = None

    @property
    def numeric(self) -> bool:
        """Whether values stand right."""
        return self.format in NUMERIC


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a name, under which it downloads."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Rows
    empty: str = "Nothing yet."
    lead: tuple[str, ...] = ()

    @property
    def ordered_columns(self) -> tuple[Column, ...]:
        """All columns as people see them: those of `lead` first. Files keep their order."""
        place = {key: i for i, key in enumerate(self.lead)}
        return tuple(sorted(self.columns, key=lambda column: place.get(column.key, len(place))))

    @property
    def first_columns(self) -> tuple[Column, ...]:
        """The columns that are shown by default."""
        return tuple(column for column in self.ordered_columns if not column.extra)


@dataclass(frozen=True, slots=True)
class TableView:
    """How a table comes to be: its name and columns, and the function that reads its rows.

    `read_blocks` reads the same rows block by block, for files of tables that grow with the record.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    read_rows: Callable[[ProjectQueries], Rows]
    empty: str = "Nothing yet."
    lead: tuple[str, ...] = ()
    read_blocks: Callable[[ProjectQueries], Iterator[Rows]] | None = None

    def blocks(self, queries: ProjectQueries) -> Iterator[Rows]:
        """Yield the rows, at once where they are few."""
        if self.read_blocks is None:
            yield self.read_rows(queries)
        else:
            yield from self.read_blocks(queries)

    def read(self, queries: ProjectQueries) -> Table:
        """Return the table with its rows."""
        rows = self.read_rows(queries)
        return Table(self.name, self.title, self.columns, rows, self.empty, self.lead)


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


def sorted_rows(rows: Rows, key: str, *, descending: bool) -> Rows:
    """Return rows by one of their values; those without it come last either way.

    >>> rows = [{"a": 2}, {"a": None}, {"a": 1}]
    >>> sorted_rows(rows, "a", descending=True)
    [{'a': 2}, {'a': 1}, {'a': None}]
    """
    known = [row for row in rows if row.get(key) is not None]
    missing = [row for row in rows if row.get(key) is None]
    return sorted(known, key=lambda row: _order(row[key]), reverse=descending) + missing


def _order(value: Any) -> tuple[int, float, str]:
    """Numbers before text, text whatever its case."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value).casefold()


def as_csv(table: Table) -> str:
    """Return the table's raw values; text that a spreadsheet would run gets a quote before it."""
    return "".join(csv_blocks(table.columns, [table.rows]))


def csv_blocks(columns: Sequence[Column], blocks: Iterable[Rows]) -> Iterator[str]:
    """Yield the text of a CSV file: the headings, then each block of rows."""
    yield _csv_lines([[column.title for column in columns]])
    for rows in blocks:
        yield _csv_lines(
            [csv_cell(row.get(column.key), column.format) for column in columns] for row in rows
        )


def _csv_lines(lines: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(lines)
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
