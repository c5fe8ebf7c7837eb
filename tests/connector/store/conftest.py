"""A migrated, empty audit store, once on SQLite and once on PostgreSQL, and who may write it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringfence.connector.store import migrate
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.writer import Writer
from tests.store_copies import StoreCopies
from tests.stores import open_at


@pytest.fixture
def store(sql_url: str, tmp_path: Path, store_copies: StoreCopies) -> Iterator[Store]:
    def migrate_store() -> None:
        opened = open_at(sql_url)
        migrate.migrate_sql(opened)
        opened.close()

    store_copies.provide("migrated", sql_url, tmp_path / "nothing", migrate_store)
    opened = open_at(sql_url)
    yield opened
    opened.close()


@pytest.fixture
def writer(store: Store) -> Iterator[Writer]:
    held = acquire(store, "p", "test", 60)
    yield Writer(store, held, b"key")
    release(store, held)
