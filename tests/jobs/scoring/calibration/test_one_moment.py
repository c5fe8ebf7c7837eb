"""Who calibrates is read at one moment: `ringfence explain` asks while a run is decided."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from ringfence.connector.records import JoinedNode
from ringfence.connector.store import migrate, tables
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.lease import acquire
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.promise import FIRST_TERMS
from ringfence.jobs.scoring.calibration.calibration_set import read_calibration_set
from tests.connector.store.calibration.test_calibration_digest import VERSION, decide
from tests.stores import open_at

KEYS = {seq: [f"s:{seq}-{i}" for i in range(6)] for seq in range(1, 8)}
MODEL = SimpleNamespace(version=VERSION, classes=["a", "b"], manifest={"seed": 1})
TERMS = replace(FIRST_TERMS, calibration_set="window", window_nodes=500)


@pytest.fixture
def writer(sql_url):
    """Seven runs; the classes of all their nodes are known, and nobody has joined."""
    store = open_at(sql_url)
    migrate.migrate_sql(store)
    held = Writer(store, acquire(store, "p", "test", 60), b"key")
    for keys in KEYS.values():
        decide(held, keys)
    with store.transaction() as connection:
        connection.execute(update(tables.prediction).values(label="a", labelled_ns=1))
    yield held
    store.close()


def chosen(store):
    settings = SimpleNamespace(graph=SimpleNamespace(label_delay_days=None))
    workspace = SimpleNamespace(
        store=store, project="p", settings=settings
    )  # MODEL has no seed key
    return read_calibration_set(workspace, MODEL, TERMS, [])


def decide_between(monkeypatch, writer):
    """Let a run be decided, by which all nodes join, after the nodes were counted."""
    counts = KnownNodes.counts

    def count_and_decide(known):
        found = counts(known)
        nodes = [JoinedNode(key, seq, "a") for seq, keys in KEYS.items() for key in keys]
        decide(writer, ["s:8"], nodes)
        return found

    monkeypatch.setattr(KnownNodes, "counts", count_and_decide)


def test_a_run_that_is_decided_meanwhile_changes_nothing(writer, monkeypatch):
    before = chosen(writer.store)
    assert len(before.members) > 6
    decide_between(monkeypatch, writer)
    assert chosen(writer.store) == before


def test_without_one_moment_nodes_would_be_missing(writer, monkeypatch):
    before = chosen(writer.store)
    decide_between(monkeypatch, writer)
    monkeypatch.setattr(type(writer.store), "at_one_moment", lambda store: nullcontext(store))
    assert len(chosen(writer.store).members) < len(before.members)
