"""Every entry of the chain says when it was written, and by whom."""

import json
import os
import pwd
import socket

import pytest
from sqlalchemy import insert, select

from ringfence.connector.store import chain, tables
from ringfence.connector.store.audit_chain.actor import acting_as
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.migrate import migrate_sql
from ringfence.connector.store.queries.project import ProjectQueries

KEY = b"the key of this test"


@pytest.fixture
def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path / 'audit.db'}")
    migrate_sql(opened)
    yield opened
    opened.close()


def test_an_entry_carries_the_databases_time_and_the_actor(store):
    with acting_as("score"), store.transaction() as connection:
        before = store.now_ns(connection)
        chain.append(connection, "p", KEY, "test", {})
        after = store.now_ns(connection)
    with store.reading() as connection:
        body = json.loads(connection.execute(select(tables.audit.c.body)).scalar_one())
    assert before <= body["at_ns"] <= after
    assert body["actor"] == {
        "host": socket.gethostname(), "process": os.getpid(), "verb": "score",
        "user": pwd.getpwuid(os.geteuid()).pw_name,
    }  # fmt: skip


def test_an_entry_of_an_older_version_fits_and_is_shown_without_them(store):
    body = '{"kind":"test","n":1,"project":"p"}'
    old = {"project": "p", "n": 1, "body": body, "prev": "", "hash": chain.seal(KEY, "", body)}
    with acting_as("train"), store.transaction() as connection:
        connection.execute(insert(tables.audit).values(**old))
        chain.append(connection, "p", KEY, "test", {})
        assert chain.first_broken(connection, "p", KEY) is None
    newest, oldest = ProjectQueries(store, "p").chain()
    assert (oldest.at_ns, oldest.actor) == (None, "")
    assert newest.at_ns is not None
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert newest.actor == f"train by {user} on {socket.gethostname()}, process {os.getpid()}"


def test_an_entry_names_the_dashboards_user_and_never_one_from_the_environment(store, monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody else")
    monkeypatch.setenv("USER", "somebody else")
    with store.transaction() as connection:
        chain.append(connection, "p", KEY, "test", {})
        with acting_as("serve", "anna"):
            chain.append(connection, "p", KEY, "test", {})
        chain.append(connection, "p", KEY, "test", {})
    users = [entry.facts["actor"]["user"] for entry in ProjectQueries(store, "p").chain()]
    mine = pwd.getpwuid(os.geteuid()).pw_name
    assert users == [mine, "anna", mine]
