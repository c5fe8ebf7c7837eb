"""Every SQL engine of the registry has what the store asks of it."""

from functools import partial

import pytest
from sqlalchemy import delete, make_url, select
from sqlalchemy.exc import IntegrityError

from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.store.blocks import insert_columns
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.dialects.base import Dialect
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.tables import worklist_entry
from tests.stores import open_at


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


ODD = {
    "node_key": ["s:tab\there", "s:\\N", "s:größe 🜁", "s:'quoted' \"twice\"", "s:line\nbreak"],
    "class": ["a", "\\.", "], [", ",;", " "],
    "p": [1 / 3, 5e-324, 1.0, 0.1, 2**-60],
    "size": [1, 2, 3, 4, 2**31 - 1],
    "degree": [0, 1, 2**40, 3, 2**63 - 1],
}


def entries_in(store):
    columns = [worklist_entry.c[name] for name in (*ODD, "project", "seq", "known")]
    with store.reading() as connection:
        found = connection.execute(select(*columns).order_by(worklist_entry.c.degree)).all()
    return [tuple(row) for row in found]


def insert_odd(store, way=insert_columns):
    constants = {"project": "p; DROP TABLE run", "seq": 2**40, "known": False}
    with store.transaction() as connection:
        way(connection, worklist_entry, ODD, constants)


def test_columns_arrive_as_an_engine_without_a_faster_way_would_write_them(store):
    insert_odd(store)
    fast = entries_in(store)
    with store.transaction() as connection:
        connection.execute(delete(worklist_entry))
    insert_odd(store, partial(Dialect.insert_columns, store.dialect))
    assert fast == entries_in(store)
    assert [row[2] for row in fast] == [ODD["p"][i] for i in (0, 1, 3, 2, 4)]


def test_no_rows_are_no_error(store):
    with store.transaction() as connection:
        insert_columns(connection, worklist_entry, {name: [] for name in ODD}, {"project": "p"})
    assert entries_in(store) == []


def test_a_row_that_stands_already_takes_the_whole_block_back(store):
    insert_odd(store)
    with pytest.raises(IntegrityError):
        insert_odd(store)
    assert len(entries_in(store)) == len(ODD["node_key"])


@pytest.mark.parametrize("sql_url", ["postgresql"], indirect=True)
def test_a_server_that_ends_the_session_is_told_as_a_store_that_does_not_work(store, sql_url):
    other = open_at(sql_url)

    def write_and_lose_the_session():
        constants = {"project": "p", "seq": 1, "known": False}
        with store.transaction() as connection:
            mine = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            with other.transaction() as administrator:
                administrator.exec_driver_sql(f"SELECT pg_terminate_backend({mine})")
            insert_columns(connection, worklist_entry, ODD, constants)

    with pytest.raises(StoreError, match="doesn't work"):
        write_and_lose_the_session()
    other.close()
    assert entries_in(store) == []  # the pool opens another session
