"""A run goes to SQL in blocks and is decided at once: with all of them, or not at all."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import func, select, text

from ringfence.connector import fault_points
from ringfence.connector.key_column import KeyColumn
from ringfence.connector.prediction_table import FurtherSizes, PredictionTable
from ringfence.connector.store import predictions, runs, tables
from ringfence.connector.store.queries.sizes import table_sizes
from ringfence.connector.store.runs import Decision
from tests.connector.store.test_rows import FACTS
from tests.stores import sqlite

NAMES = ("a", "b")
WRITTEN = (
    tables.run, tables.prediction, tables.worklist_entry, tables.further_set, tables.audit,
)  # fmt: skip


class Died(BaseException):
    """As a signal between two blocks would end the process."""


def decision(nodes):
    rng = np.random.default_rng(3)
    p = rng.integers(1, 11, (nodes, 2)) / 11
    text = "".join(f"i:{i:07}" for i in range(nodes)).encode()
    ends = np.arange(1, nodes + 1, dtype=np.int64) * 9
    keys = KeyColumn(np.frombuffer(text, np.uint8), ends, rng.permutation(nodes))
    table = PredictionTable(keys, NAMES, p > 0.5, p, -p, rng.integers(0, 9, nodes))
    further = FurtherSizes(keys, (0.05,), np.full((1, nodes), 2))
    return Decision(replace(FACTS, n_evaluated=nodes), table, [], further_sets=further)


def counts(store):
    with store.reading() as connection:
        return [
            connection.execute(select(func.count()).select_from(one)).scalar() for one in WRITTEN
        ]


def sealed(store):
    with store.reading() as connection:
        bodies = connection.execute(select(tables.audit.c.body).order_by(tables.audit.c.n)).all()
    return json.loads(bodies[-1].body)["predictions"]


def die_at(monkeypatch, place, nth):
    passed = []

    def reach(name):
        passed.append(name)
        if passed.count(place) == nth:
            raise Died(name)

    monkeypatch.setattr(fault_points, "reach", reach)
    return passed


@pytest.mark.parametrize("nth", [1, 3])
def test_who_dies_between_two_blocks_has_decided_nothing_and_the_next_run_decides_all(
    writer, monkeypatch, nth
):
    monkeypatch.setattr(predictions, "NODES_PER_BLOCK", 4)
    before = counts(writer.store)
    with monkeypatch.context() as dying:
        die_at(dying, "block in sql", nth)
        with pytest.raises(Died):
            runs.decide(writer, decision(10))
    assert counts(writer.store) == before
    assert runs.undone(writer.store, "p") == []
    passed = die_at(monkeypatch, "nowhere", 1)
    seq = runs.decide(writer, decision(10))
    assert passed.count("block in sql") == 3
    assert runs.undone(writer.store, "p") == [seq] == [1]
    assert counts(writer.store)[:2] == [1, 10]


@sqlite
def test_the_seal_does_not_depend_on_the_blocks(writer, monkeypatch):
    seen = {}
    for size in (1, 4, 5_000):
        monkeypatch.setattr(predictions, "NODES_PER_BLOCK", size)
        runs.decide(writer, decision(10))
        with writer.store.transaction() as connection:
            seen[sealed(writer.store)] = size
            connection.execute(text("DELETE FROM further_set"))
            connection.execute(text("DELETE FROM worklist_entry"))
            connection.execute(text("DELETE FROM prediction"))
    assert len(seen) == 1


@sqlite
def test_a_run_that_takes_longer_than_its_lease_has_it_anew_when_it_is_decided(writer, monkeypatch):
    store, held = writer.store, replace(writer.lease, seconds=0.5)
    clock = iter(range(10**18, 10**19, 10**12))
    monkeypatch.setattr(type(store), "now_ns", lambda *_: next(clock))
    runs.decide(replace(writer, lease=held), decision(3))
    with store.reading() as connection:
        until = connection.execute(select(tables.lease.c.expires_ns)).scalar_one()
        decided = connection.execute(select(tables.run.c.decided_ns)).scalar_one()
    assert until > decided + 10**12


@sqlite
def test_keys_of_evaluated_nodes_come_in_parts(writer):
    runs.decide(writer, decision(10))
    parts = list(predictions.evaluated_blocks(writer.store, "p", rows=4))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sorted(key for part in parts for key in part) == [f"i:{i:07}" for i in range(10)]
    assert list(predictions.evaluated_blocks(writer.store, "p", after_seq=1)) == []


@sqlite
def test_what_stands_in_memory_beside_the_arrays_does_not_grow_with_the_run(writer, monkeypatch):
    monkeypatch.setattr(predictions, "NODES_PER_BLOCK", 200)

    def peak(nodes):
        whole = decision(nodes)
        whole.predictions.keys.order()
        tracemalloc.start()
        try:
            with writer.store.transaction() as connection:
                predictions.insert_predictions(connection, "p", "m", 1, whole.predictions)
                connection.rollback()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    monkeypatch.setattr(predictions, "insert_columns", lambda *_: None)
    monkeypatch.setattr(predictions, "insert_entries", lambda *_: None)
    assert peak(12_000) < 1.2 * peak(1_200)


def test_tables_and_indexes_have_sizes(writer):
    runs.decide(writer, decision(50))
    sizes = table_sizes(writer.store)
    found = {(one.table, bool(one.index)) for one in sizes if one.bytes > 0}
    assert {("prediction", False), ("prediction", True), ("worklist_entry", True)} <= found
    assert {one.table for one in sizes} <= set(tables.metadata.tables)
    assert [one.bytes for one in sizes] == sorted((one.bytes for one in sizes), reverse=True)


@sqlite
def test_a_file_that_is_too_large_to_scan_is_one_sum(writer):
    (whole,) = table_sizes(writer.store, max_scanned_bytes=1)
    parts = table_sizes(writer.store)
    assert (whole.table, whole.index) == ("", "")
    assert whole.bytes >= sum(one.bytes for one in parts) > 0


@sqlite
def test_a_block_of_a_run_is_found_by_its_run_and_sorted_by_the_index(writer):
    """Without the keys in the index every block of a small run scanned the predictions of all."""
    seen = []
    with writer.store.reading() as connection:
        query = (
            select(tables.prediction.c.classes)
            .where(tables.prediction.c.project == "p", tables.prediction.c.seq == 3)
            .where(tables.prediction.c.node_key > "i:1")
            .order_by(tables.prediction.c.node_key)
            .limit(10)
        )
        told = str(query.compile(writer.store.engine, compile_kwargs={"literal_binds": True}))
        for statement in (told, told.replace("prediction.seq = 3 AND ", "")):
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()
            seen.append(" ".join(row[3] for row in plan))
    assert "prediction_by_run (project=? AND seq=? AND node_key>?)" in seen[0]
    assert "TEMP B-TREE" not in seen[0]
    assert "prediction_by_run" not in seen[1]
