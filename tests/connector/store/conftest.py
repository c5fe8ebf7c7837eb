"""A migrated, empty audit store, once on SQLite and once on PostgreSQL, and who may write it."""

from collections.abc import Iterator

import pytest

from ringfence.connector.store import migrate
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.writer import Writer
from tests.stores import open_at


@pytest.fixture
def store(sql_url: str) -> Iterator[Store]:
    opened = open_at(sql_url)
    migrate.migrate_sql(opened)
    yield opened
    opened.close()


@pytest.fixture
def writer(store: Store) -> Iterator[Writer]:
    held = acquire(store, "p", "test", 60)
    yield Writer(store, held, b"key")
    release(store, held)
