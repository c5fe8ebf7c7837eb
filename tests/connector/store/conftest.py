"""A migrated, empty audit store, once on SQLite and once on PostgreSQL."""

from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from ringfence.connector.store import migrate
from ringfence.connector.store.engine import Store, open_store


def open_at(sql_url: str) -> Store:
    """Open a store; the password of a test server travels beside its URL, as a user's does."""
    address = make_url(sql_url)
    bare = address._replace(password=None).render_as_string()
    return open_store(bare, None if address.password is None else str(address.password))


@pytest.fixture
def store(sql_url: str) -> Iterator[Store]:
    opened = open_at(sql_url)
    migrate.migrate_sql(opened)
    yield opened
    opened.close()
