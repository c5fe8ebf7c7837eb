"""SQL stores, with the project's folder beside them, that are made once per process and copied.

A copy of a store is a SQLite file, or a PostgreSQL database that serves as template. To migrate a
store costs 0.2 CPU seconds, to fill one with a record 0.7; to copy it costs next to nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, create_engine, make_url, text

DATABASE_PREFIX = f"ringfence_test_{os.getpid()}_"
"""How this process's databases begin on a PostgreSQL server that it may share with others."""


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """A store at rest: a SQLite file or the address of a template, and the folder beside it."""

    database: Path | URL
    folder: Path


@dataclass(slots=True)
class StoreCopies:
    """The copies of one process."""

    folder: Path
    _taken: list[StoreCopy] = field(default_factory=list)
    _named: dict[Hashable, StoreCopy] = field(default_factory=dict)

    def provide(
        self, name: Hashable, url: str | URL, folder: Path, make: Callable[[], object]
    ) -> None:
        """Let the store at `url` and the folder be what `make` makes of empty ones.

        It works at the first call with this name and engine alone, and leaves the store closed;
        later calls get a copy.
        """
        address = make_url(url)
        name = (address.get_backend_name(), name)
        if name in self._named:
            self.restore(self._named[name], address, folder)
            return
        clear_store(address, folder)
        make()
        self._named[name] = self.take(address, folder)

    def take(self, address: URL, folder: Path) -> StoreCopy:
        """Copy a store that nobody has open, and its folder."""
        place = self.folder / str(len(self._taken))
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, place / "project")
        copy = StoreCopy(_copy_database(address, place), place / "project")
        self._taken.append(copy)
        return copy

    def restore(self, copy: StoreCopy, address: URL, folder: Path) -> None:
        """Put a copy into a place, in which nothing stays."""
        clear_folder(folder)
        shutil.copytree(copy.folder, folder)
        if isinstance(copy.database, Path):
            delete_sqlite(address)
            assert address.database is not None
            shutil.copyfile(copy.database, address.database)
            return
        administer(
            address,
            f"DROP DATABASE IF EXISTS {address.database} WITH (FORCE)",
            f"CREATE DATABASE {address.database} TEMPLATE {copy.database.database}"
            " STRATEGY FILE_COPY",
        )


def clear_store(address: URL, folder: Path) -> None:
    """Let the database be empty and the folder be gone."""
    clear_folder(folder)
    if address.get_backend_name() == "sqlite":
        delete_sqlite(address)
        return
    administer(
        address,
        f"DROP DATABASE IF EXISTS {address.database} WITH (FORCE)",
        f"CREATE DATABASE {address.database}",
    )


def clear_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def delete_sqlite(address: URL) -> None:
    """Delete a SQLite file and what SQLite writes beside it."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{address.database}{suffix}").unlink(missing_ok=True)


def _copy_database(address: URL, place: Path) -> Path | URL:
    if address.get_backend_name() == "sqlite":
        assert address.database is not None
        return Path(shutil.copyfile(address.database, place / "store.db"))
    template = address.set(database=f"{DATABASE_PREFIX}copy_{place.name}")
    administer(address, f"CREATE DATABASE {template.database} TEMPLATE {address.database}")
    return template


def administer(server: URL, *statements: str) -> None:
    """Run statements on a PostgreSQL server, outside transactions and all other databases."""
    engine = create_engine(server.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def drop_databases(server: URL) -> None:
    """Drop what this process has left on a server: the templates."""
    engine = create_engine(server.set(database="postgres"))
    with engine.connect() as connection:
        query = text("SELECT datname FROM pg_database WHERE starts_with(datname, :prefix)")
        names = connection.execute(query, {"prefix": DATABASE_PREFIX}).scalars().all()
    engine.dispose()
    administer(server, *(f"DROP DATABASE {name} WITH (FORCE)" for name in names))
