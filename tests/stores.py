"""Which SQL stores a test runs on; without a word it runs on both, in every lane."""

import pytest

sqlite = pytest.mark.parametrize("sql_url", ["sqlite"], indirect=True)
postgresql = pytest.mark.parametrize("sql_url", ["postgresql"], indirect=True)
postgresql_later = pytest.mark.parametrize(
    "sql_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
"""On both, PostgreSQL in `make test-slow` alone: for tests of what the stores do not differ in."""
