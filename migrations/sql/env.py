"""Alembic's entry: the caller hands over an open connection, nothing is read from an ini file."""

from alembic import context
from sqlalchemy import Connection


def run(connection: Connection) -> None:
    """Apply revisions on the connection, in the caller's transaction."""
    context.configure(connection=connection, version_table="ringfence_version")
    context.run_migrations()


run(context.config.attributes["connection"])
