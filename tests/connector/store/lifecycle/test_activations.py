"""Which version is in use: rows, chain entries and states, in one transaction."""

import hashlib
import json

import pytest
from sqlalchemy import text

from ringfence.connector.errors import LeaseLost
from ringfence.connector.records import Member
from ringfence.connector.store import chain
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.lifecycle.activations import (
    activations_of,
    record_activation,
    states_of,
    version_before,
)
from ringfence.connector.store.migrate import migrate_sql
from ringfence.connector.store.models import active_manifest, class_names, record_model
from ringfence.connector.store.writer import Writer


@pytest.fixture
def writer(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 'audit.db'}")
    migrate_sql(store)
    yield Writer(store, acquire(store, "p", "test", 600), b"a key of the chain")
    store.close()


def train(writer, version, promote=None):
    manifest = json.dumps({"version": version, "classes": ["a", "b"]})
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    members = [Member("i:1", "train", 0), Member("i:2", "calibration", 1)]
    return record_model(writer, version, manifest, digest, members, promote)


def states(writer):
    return states_of(class_names(writer.store, "p"), activations_of(writer.store, "p"))


def active(writer):
    return json.loads(active_manifest(writer.store, "p"))["version"]


def test_the_first_model_is_in_use_and_the_next_is_a_candidate(writer):
    assert train(writer, "one") == "active"
    assert train(writer, "two") == "candidate"
    assert states(writer) == {"one": "active", "two": "candidate"}
    assert active(writer) == "one"
    assert train(writer, "three", promote="asked for") == "active"
    assert active(writer) == "three"
    assert activations_of(writer.store, "p")[-1].reason == "asked for"


def test_rollbacks_go_back_one_promotion_each_and_stop_at_the_first(writer):
    for version in ("one", "two", "three"):
        train(writer, version)
    for version in ("two", "three"):
        record_activation(writer, version, "promoted", "better")
    seen = []
    while (before := version_before(activations_of(writer.store, "p"))) is not None:
        seen.append(before)
        record_activation(writer, before, "rolled back", "worse")
    assert seen == ["two", "one"]
    assert states(writer) == {"one": "active", "two": "retired", "three": "retired"}
    record_activation(writer, "three", "promoted", "again")
    assert version_before(activations_of(writer.store, "p")) == "one"


def test_every_change_is_an_entry_of_the_chain_with_time_and_actor(writer):
    train(writer, "one")
    train(writer, "two")
    done = record_activation(writer, "two", "promoted", 'why "not"; -- %')
    with writer.store.reading() as connection:
        entries = chain.read_entries(connection, "p")
    assert [entry.kind for entry in entries] == ["trained", "trained", "activated"]
    sealed = entries[-1].facts["activation"]
    assert (sealed["version"], sealed["was"], sealed["at_ns"]) == ("two", "one", done.at_ns)
    assert sealed["reason"] == 'why "not"; -- %'
    assert {"host", "process", "verb", "user"} <= set(json.loads(sealed["actor"]))


def test_who_lost_the_lease_changes_nothing(writer):
    train(writer, "one")
    train(writer, "two")
    release(writer.store, writer.lease)
    acquire(writer.store, "p", "successor", 600)
    with pytest.raises(LeaseLost):
        record_activation(writer, "two", "promoted", "better")
    assert active(writer) == "one"
    assert len(activations_of(writer.store, "p")) == 1


def test_an_entry_that_cannot_be_sealed_leaves_no_row(writer):
    train(writer, "one")
    train(writer, "two")
    other = Writer(writer.store, writer.lease, b"another key altogether")
    with pytest.raises(Exception, match="does not fit"):
        record_activation(other, "two", "promoted", "better")
    with writer.store.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM activation")).scalar() == 1
