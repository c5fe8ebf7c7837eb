"""A run does not begin on a chain, manifest or member list that does not fit."""

import pytest
from sqlalchemy import text

from ringfence.connector.errors import StoreError
from ringfence.connector.store.audit_chain.keys import KeySource, require_first_key
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.chain import chain_key
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.lease import acquire
from ringfence.connector.store.writer import Writer
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import Plan, fill_store


@pytest.fixture
def writer(tmp_path):
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
    }
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    store = open_store(f"sqlite:///{tmp_path / 'audit.db'}")
    fill_store(store, settings, Plan(runs=2, per_run=10, calibration=20))
    held = acquire(store, "p", "test", 600)
    yield Writer(store, held, chain_key(None, settings.engine.folder))
    store.close()


EDITS = {
    "UPDATE model SET manifest = '{}'": "manifest of model sample-1 is not the one",
    "UPDATE member SET class_index = class_index + 1 WHERE role = 'calibration'": "members of",
    "DELETE FROM member WHERE role = 'calibration'": "has 70 members, but 90 were recorded",
    "DELETE FROM activation": "the active model is None, but the chain has sample-1",
    "UPDATE audit SET body = '{}' WHERE n = (SELECT max(n) FROM audit)": "does not fit",
    "DELETE FROM audit WHERE n = 2": "entries before it are missing",
    "DELETE FROM audit": "no entry that fits for model sample-1",
}


def test_a_sound_record_is_taken(writer):
    require_sound_record(writer)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_record_is_refused_with_what_differs(writer, edit):
    with writer.store.transaction() as connection:
        for verb in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER audit_no_{verb}"))
        connection.execute(text(edit))
    with pytest.raises(StoreError, match=EDITS[edit]) as refused:
        require_sound_record(writer)
    assert refused.value.next_step == "ringfence verify"


def test_another_key_is_refused(writer):
    with pytest.raises(StoreError, match="does not fit this machine's key"):
        require_sound_record(Writer(writer.store, writer.lease, b"another key"))


def test_no_new_key_where_a_chain_exists(writer, tmp_path):
    elsewhere = tmp_path / "another folder"
    with writer.store.reading() as connection:
        with pytest.raises(StoreError, match="its key is not here"):
            require_first_key(connection, "p", KeySource(None, elsewhere, elsewhere))
        require_first_key(connection, "a new project", KeySource(None, elsewhere, elsewhere))
        require_first_key(connection, "p", KeySource("a configured key", elsewhere, elsewhere))
    assert not elsewhere.exists()
