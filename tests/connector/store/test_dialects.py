"""Every SQL engine of the registry has what the store asks of it."""

import pytest
from sqlalchemy import make_url

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.engine import open_store


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_found_by_its_own_example(name):
    dialect = DIALECTS[name]
    assert make_url(dialect.example_url).get_backend_name() == dialect.name == name
    opened = open_store(dialect.example_url)
    assert opened.dialect is dialect
    opened.close()


def test_an_unknown_engine_is_refused_with_an_example_of_each():
    with pytest.raises(ConfigError) as caught:
        open_store("mssql://localhost/db")
    assert all(dialect.example_url in str(caught.value) for dialect in DIALECTS.values())


def test_a_store_on_a_server_is_never_a_missing_file():
    assert DIALECTS["postgresql"].missing(make_url("postgresql+psycopg://host/none")) is None
