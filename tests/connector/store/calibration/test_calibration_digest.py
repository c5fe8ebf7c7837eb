"""The seal of who joined a calibration: what extends it, and which edits it shows."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import insert, select, text, update

from ringfence.connector.key_column import KeyColumn
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import JoinedNode
from ringfence.connector.store import runs, tables
from ringfence.connector.store.calibration import calibration_digest
from ringfence.connector.store.calibration.calibration_digest import (
    EMPTY_DIGEST,
    THROUGH,
    is_as_recorded,
    seal_by_objects,
    seal_by_text,
)
from ringfence.connector.store.runs import Decision
from tests.connector.store.test_rows import FACTS
from tests.stores import sqlite

VERSION = FACTS.model
ODD = ['s:"', "s:\\", "s:é", "s:\x01\t\n", "s:\x7f", "s:/", "s:\u2028", "s:😀", "s:Z", "s:a", "s:_"]


def decide(writer, keys, joining=()):
    """Decide a run over some keys; nodes of earlier runs join by it."""
    raw = [key.encode() for key in keys]
    ends = np.cumsum([len(one) for one in raw]).astype(np.int64)
    column = KeyColumn(np.frombuffer(b"".join(raw), np.uint8), ends, np.arange(len(keys)))
    p = np.full((len(keys), 2), 0.5)
    table = PredictionTable(column, ("a", "b"), p > 0.1, p, -p, np.zeros(len(keys), np.int64))
    facts = replace(FACTS, n_evaluated=len(keys))
    return runs.decide(writer, Decision(facts, table, [], joined=joining))


def newest_facts(store):
    with store.reading() as connection:
        query = select(tables.audit.c.body).order_by(tables.audit.c.n.desc()).limit(1)
        return json.loads(connection.execute(query).scalar_one())["joined"]


def is_sound(store):
    with store.reading() as connection:
        return is_as_recorded(connection, "p", VERSION, newest_facts(store))


def join_twice(writer):
    """Three runs: nobody joins by the first, odd keys by the second, others by the third."""
    first = decide(writer, ODD)
    second = decide(
        writer, ["s:1", "s:2"], [JoinedNode(key, first, 'cl"ass é') for key in reversed(ODD)]
    )
    decide(writer, ["s:3"], [JoinedNode("s:1", second, "a")])


def test_a_run_extends_the_seal_as_if_all_had_been_counted(store, writer):
    decide(writer, ["s:0"])
    assert newest_facts(store)[THROUGH] == EMPTY_DIGEST
    join_twice(writer)
    with store.reading() as connection:
        whole = seal_by_objects(connection, "p", VERSION)
        assert newest_facts(store)[THROUGH] == whole == seal_by_text(connection, "p", VERSION)
    decide(writer, ["s:4"])  # nobody joins by it
    assert newest_facts(store)[THROUGH] == whole
    assert is_sound(store)


@pytest.mark.parametrize(
    "edit",
    [
        {"label": "b"},
        {"evaluated_seq": 9},
        {"seq": 1},
        {"version": "another"},
        {"node_key": "s:2"},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_every_edit_of_a_row_shows(store, writer, edit):
    join_twice(writer)
    assert is_sound(store)
    with store.transaction() as connection:
        one = tables.joined.c.node_key == "s:1"
        connection.execute(update(tables.joined).where(one).values(**edit))
    assert not is_sound(store)


REST_OF_TWO_ROWS = """1,"a"]["s:2",1"""


@sqlite
@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM joined WHERE node_key = 's:2'; "
        f"UPDATE joined SET evaluated_seq = '{REST_OF_TWO_ROWS}'",  # the text of both
        "UPDATE joined SET seq = '\u0662'",  # a two, for Python's int()
        "UPDATE joined SET seq = X'32'",
        "UPDATE joined SET evaluated_seq = X'31'",
        "UPDATE joined SET label = X'61'",
        "UPDATE joined SET node_key = X'61' WHERE node_key = 's:1'",
    ],
    ids=["two rows in one", "another digit", "run", "number", "class", "key"],
)
def test_a_value_of_another_type_shows(store, writer, edit):
    first = decide(writer, ["s:1", "s:2"])
    decide(writer, ["s:3"], [JoinedNode(key, first, "a") for key in ("s:1", "s:2")])
    assert is_sound(store)
    with closing(sqlite3.connect(str(store.engine.url.database))) as other:  # checks no references
        other.executescript(edit)
    assert not is_sound(store)


def test_a_row_more_or_fewer_shows(store, writer):
    join_twice(writer)
    row = {"project": "p", "version": VERSION, "node_key": "s:2", "seq": 3, "evaluated_seq": 2}
    with store.transaction() as connection:
        connection.execute(insert(tables.joined).values(**row, label="a"))
    assert not is_sound(store)
    with store.transaction() as connection:
        connection.execute(text("DELETE FROM joined WHERE node_key = 's:2'"))
    assert is_sound(store)
    with store.transaction() as connection:
        connection.execute(text("DELETE FROM joined WHERE node_key = 's:1'"))
    assert not is_sound(store)


def test_where_the_database_writes_a_text_otherwise_python_decides(store, writer, monkeypatch):
    join_twice(writer)
    monkeypatch.setattr(calibration_digest, "_digests_by_text", lambda *_: [(2, "other escapes")])
    assert is_sound(store)


@sqlite
def test_a_text_that_is_too_long_for_the_database_is_made_by_python(store, writer):
    join_twice(writer)
    recorded = newest_facts(store)
    with store.reading() as connection:
        server = connection.connection.driver_connection
        usual = server.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 250)
        assert seal_by_text(connection, "p", VERSION) is None
        assert is_as_recorded(connection, "p", VERSION, recorded)
        server.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, usual)
        assert seal_by_text(connection, "p", VERSION) == recorded[THROUGH]


def test_an_error_of_the_text_leaves_the_transaction_as_it_was(store, writer, monkeypatch):
    join_twice(writer)
    name = store.dialect.name
    other = replace(store.dialect, json_text="no_such_function")
    monkeypatch.setitem(calibration_digest.DIALECTS, name, other)
    with store.reading() as connection:
        assert seal_by_text(connection, "p", VERSION) is None
    assert is_sound(store)


def test_entries_of_older_versions_have_one_hash_of_all_rows(store, writer):
    join_twice(writer)
    with store.reading() as connection:
        older = {"all_rows": calibration_digest._all_rows_digest(connection, "p", VERSION)}
        assert is_as_recorded(connection, "p", VERSION, older)
        assert not is_as_recorded(connection, "p", VERSION, {})
        assert is_as_recorded(connection, "p", "nobody joined", {})
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(calibration_digest, "_recorded_before", lambda *_: older)
        decide(writer, ["s:5"], [JoinedNode("s:2", 2, "b")])  # the first run after an update
    assert is_sound(store)
