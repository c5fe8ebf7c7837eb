"""SQL stores of tests, and which cases run in which lane; without a word all do, on both stores."""

from collections.abc import Iterable
from typing import Any

import pytest
from sqlalchemy import make_url

from ringfence.connector.store.engine import Store, open_store

sqlite = pytest.mark.parametrize("sql_url", ["sqlite"], indirect=True)
postgresql = pytest.mark.parametrize("sql_url", ["postgresql"], indirect=True)
postgresql_later = pytest.mark.parametrize(
    "sql_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
"""On both, PostgreSQL in `make test-slow` alone: for tests of what the stores do not differ in."""


def two_at_once(cases: Iterable[Any]) -> list[Any]:
    """The first two of a table of like cases, the others in `make test-slow` alone."""
    return [
        case if place < 2 else pytest.param(case, marks=pytest.mark.long)
        for place, case in enumerate(cases)
    ]


def open_at(sql_url: str) -> Store:
    """Open a store; the password of a test server travels beside its URL, as a user's does."""
    address = make_url(sql_url)
    bare = address._replace(password=None).render_as_string()
    return open_store(bare, None if address.password is None else str(address.password))
