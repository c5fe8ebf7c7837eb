"""The graph database that a project belongs to, by the id that its server gave it.

A changed address, or another application's variable, must not let a project write into another
database. `ringfence migrate` records the id; it needs no key and seals nothing, for the row decides
no set: whoever may change it may change the address too, and `verify` compares the graph itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, PrimaryKeyConstraint, Table, Text, delete, insert, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.thresholds.tables import metadata

__all__ = ["RecordedDatabase", "graph_database", "read_database", "record_database"]

graph_database = Table(
    "graph_database",
    metadata,
    Column("project", Text),
    Column("id", Text, nullable=False),
    Column("name", Text, nullable=False),
    PrimaryKeyConstraint("project"),
)
"""The graph database that a project belongs to, as its server identifies it."""


@dataclass(frozen=True, slots=True)
class RecordedDatabase:
    """A database by id and name, as they were when it was recorded."""

    id: str
    name: str


def read_database(store: Store, project: str) -> RecordedDatabase | None:
    """Return the database on record; None before the first migration by this version."""
    columns = select(graph_database.c.id, graph_database.c.name)
    with store.reading() as connection:
        row = connection.execute(columns.where(graph_database.c.project == project)).first()
    return None if row is None else RecordedDatabase(row.id, row.name)


def record_database(store: Store, project: str, database: RecordedDatabase) -> None:
    """Record the project's database in place of what was recorded before."""
    with store.transaction() as connection:
        connection.execute(delete(graph_database).where(graph_database.c.project == project))
        values = {"project": project, "id": database.id, "name": database.name}
        connection.execute(insert(graph_database).values(values))
