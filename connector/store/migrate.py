"""Bring the SQL store to this code's version; twice does no harm, going back is refused."""

from __future__ import annotations

from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from ringfence.connector.errors import WrongVersion
from ringfence.connector.store.engine import Store

VERSION_TABLE = "ringfence_version"


def migrate_sql(store: Store) -> list[str]:
    """Apply the missing Alembic revisions in one transaction and tell which."""
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
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _alembic(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option(
        "script_location", str(files("ringfence.migrations").joinpath("sql")).replace("%", "%%")
    )
    config.attributes["connection"] = connection
    return config


def _head() -> str:
    return ScriptDirectory.from_config(_alembic()).get_current_head() or ""


def _refuse_newer(version: str | None) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(_alembic()).walk_revisions()}
    if version is not None and version not in known:
        raise WrongVersion(
            found=f"the audit store is at version {version}, which this ringfence doesn't know",
            needed=f"version {_head()} or older; a newer ringfence has been here",
            next_step="pip install --upgrade ringfence",
        )
