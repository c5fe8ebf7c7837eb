"""A table on a page: the chosen columns in the chosen order, with its links.

Columns and order stand in the address (`columns.runs=seq`, `sort.runs=-seq`), so that a page works
without a script and a link shows what its sender saw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.dashboard.address import Address, Parameters
from ringfence.jobs.dashboard.time_range import FROM, UNTIL
from ringfence.jobs.views.tables import TABLES, Column, Table
from ringfence.jobs.views.tables.model import Rows, sorted_rows

MAX_TABLE_ROWS = 50
MAX_SORTED_ROWS = 2_000  # of a long history the newest are sorted

Order = Literal["ascending", "descending", "none"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A column with the link that sorts by it, and how the table is sorted by it now."""

    column: Column
    address: str
    order: Order


@dataclass(frozen=True, slots=True)
class Choice:
    """A column that can be shown, with the ones that come along."""

    column: Column
    title: str
    shown: bool


@dataclass(frozen=True, slots=True)
class PageTable:
    """What the template of a table takes; `hidden` is what its form passes on."""

    name: str
    title: str
    empty: str
    headings: tuple[Heading, ...]
    choices: tuple[Choice, ...]
    chosen: bool
    rows: Rows
    note: str
    csv: str
    path: str
    hidden: Parameters
    reset: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are shown."""
        return tuple(heading.column for heading in self.headings)


def show_table(history: ProjectQueries, address: Address, name: str) -> PageTable:
    """Return a table as the address describes it; of histories the newest rows, the CSV has all."""
    view, sort = TABLES[name], address.get(f"sort.{name}")
    keys = {column.key for column in view.columns}
    sort = sort if sort.removeprefix("-") in keys else ""
    most = MAX_SORTED_ROWS if sort else MAX_TABLE_ROWS
    table = view.read(replace(history, max_rows=most + 1))
    more, rows = len(table.rows) > most, table.rows[:most]
    if sort:
        rows = sorted_rows(rows, sort.removeprefix("-"), descending=sort.startswith("-"))
    wanted = set(address.all(f"columns.{name}")) & keys
    columns = tuple(c for c in table.ordered_columns if _is_shown(c, wanted))
    asked = {FROM: address.get(FROM), UNTIL: address.get(UNTIL)}
    return PageTable(
        name=name,
        title=table.title,
        empty=table.empty,
        headings=tuple(_heading(column, address, name, sort) for column in columns),
        choices=_choices(table, wanted),
        chosen=bool(wanted),
        rows=rows[:MAX_TABLE_ROWS],
        note=_note(len(rows), more, sort),
        csv=Address(f"/csv/{name}").link(asked),
        path=address.path,
        hidden=address.without([f"columns.{name}"]),
        reset=address.link({f"columns.{name}": ""}, name),
    )


def _is_shown(column: Column, wanted: set[str]) -> bool:
    if not wanted:
        return not column.extra
    return (column.beside or column.key) in wanted


def _choices(table: Table, wanted: set[str]) -> tuple[Choice, ...]:
    beside = {column.beside: column for column in table.columns if column.beside}
    return tuple(
        Choice(
            column,
            f"{column.title}, {beside[column.key].title}" if column.key in beside else column.title,
            _is_shown(column, wanted),
        )
        for column in table.ordered_columns
        if column.beside is None
    )


def _heading(column: Column, address: Address, name: str, sort: str) -> Heading:
    """The link sorts by the column; a second click reverses the order."""
    order: Order = "none"
    if sort.removeprefix("-") == column.key:
        order = "descending" if sort.startswith("-") else "ascending"
    following = column.key if order == "descending" else f"-{column.key}"
    if order == "none" and not (column.numeric or column.format in {"time", "run"}):
        following = column.key  # text from a to z first, numbers from the largest
    return Heading(column, address.link({f"sort.{name}": following}, name), order)


def _note(rows: int, more: bool, sort: str) -> str:
    if rows <= MAX_TABLE_ROWS and not more:
        return ""
    if sort:
        of_newest = "newest " if more else ""
        return f"The first {MAX_TABLE_ROWS} of the {of_newest}{rows:,} rows; the CSV has all."
    return f"The newest {MAX_TABLE_ROWS} rows; the CSV has all."
