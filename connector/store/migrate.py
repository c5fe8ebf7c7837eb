"""Migrate the SQL store to this code's version: idempotent; downgrades are refused.

Alembic is imported to migrate, but not to check the version: every command does that, and importing
Alembic takes half a CPU second.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from ringfence.connector.errors import WrongVersion
from ringfence.connector.store.engine import Store

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "ringfence_version"
SELECT_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - a name of our own


def migrate_sql(store: Store) -> list[str]:
    """Apply the missing Alembic revisions in one transaction and report which."""
    from alembic import command
    from alembic.script import ScriptDirectory

    store.make_place()
    with store.transaction() as connection:
        before = _sql_version(connection)
        _refuse_newer(before)
        config = _alembic(connection)
        command.upgrade(config, "head")
        after = _sql_version(connection)
    if before == after:
        return []
    return [
        f"SQL {script.revision}: {script.doc}"
        for script in reversed(list(ScriptDirectory.from_config(config).walk_revisions()))
        if before is None or script.revision > before
    ]


def has_tables(store: Store) -> bool:
    """Whether the store was ever migrated, by whichever version; a missing one is made, empty."""
    store.make_place()
    with store.reading() as connection:
        return _sql_version(connection) is not None


def is_new(store: Store) -> bool:
    """Whether no version of ringfence has migrated this store yet."""
    with store.reading() as connection:
        return _sql_version(connection) is None


def require_sql(store: Store) -> None:
    """Raise `WrongVersion` unless the store is exactly at this code's version."""
    with store.reading() as connection:
        version = _sql_version(connection)
    _refuse_newer(version)
    if version != _head():
        raise WrongVersion(
            found=f"the audit store is at version {version or 'none'}",
            needed=f"version {_head()}",
            next_step="ringfence migrate",
        )


def _sql_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.execute(text(SELECT_VERSION)).scalar_one_or_none()
    return version


def _alembic(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option(
        "script_location", str(files("ringfence.migrations").joinpath("sql")).replace("%", "%%")
    )
    config.attributes["connection"] = connection
    return config


def revisions() -> list[str]:
    """Return the numbers of all revisions, oldest first, as their files are named."""
    names = [file.name for file in files("ringfence.migrations.sql.versions").iterdir()]
    return sorted(name.partition("_")[0] for name in names if name[:1].isdigit())


def _head() -> str:
    return revisions()[-1]


def _refuse_newer(version: str | None) -> None:
    if version is not None and version not in revisions():
        raise WrongVersion(
            found=f"the audit store is at version {version}, which this ringfence doesn't know",
            needed=f"version {_head()} or older; a newer ringfence has been here",
            next_step="pip install --upgrade ringfence",
        )
