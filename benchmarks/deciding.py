"""A run's predictions into SQL: several ways in turns, on SQLite and PostgreSQL; memory and sizes.

    python -m benchmarks.deciding [--quick | --nodes 1000000]

What is timed is all that happens inside the transaction that decides a run: JSON, digests, rows.
`columns` is what the product does: arrays and the mirror's own text, block by block (tuples for
SQLite's driver, COPY for PostgreSQL), with the worklist and its index. `alone` is the same without
the worklist, to be compared with `first`: the first version's way, a record per node, a dict and
texts per row, and JSON once more for the digest; it had no worklist. `lists` is the way before
blocks were cut from arrays: all keys and their order as Python objects. CPU seconds of this process
(SQLite's own work is in it, that of the PostgreSQL server stands beside it); `more MB` is the peak
beyond what the process held with the arrays, and with numba, which a run has from its forward pass.
Each way has a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, event, insert, text

from benchmarks.measuring import cpu_seconds, keep, peak_mb, reset_peak, resident_mb, show
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Prediction
from ringfence.connector.store import migrate, predictions
from ringfence.connector.store.audit_chain.float_json import compiled_json_rows
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.predictions import insert_predictions
from ringfence.connector.store.queries.sizes import table_sizes
from ringfence.connector.store.tables import prediction
from tests.faults.servers import postgres
from tests.stores import open_at

CLASSES, CALIBRATION = 10, 2_000
STORES = ("sqlite", "postgresql")
TURNS = 2
Write = Callable[[Connection, PredictionTable], str]


def make_table(nodes: int, folder: Path) -> PredictionTable:
    """Predictions as a run has them: arrays, and keys that are text in the mirror's files."""
    rng = np.random.default_rng(1)
    keys = Keys.empty(folder)
    for start in range(0, nodes, 100_000):
        keys.append([f"i:{i}" for i in range(start, min(nodes, start + 100_000))])
    names = tuple(f"class {i}" for i in range(CLASSES))
    p = rng.integers(1, CALIBRATION + 2, (nodes, CLASSES)) / (CALIBRATION + 1)
    scores = rng.random((nodes, CLASSES))
    np.negative(scores, out=scores)
    rows = rng.permutation(nodes)
    return PredictionTable(
        keys.column(rows), names, p > 0.85, p, scores, rng.integers(0, 99, nodes)
    )  # fmt: skip


def write_columns(connection: Connection, table: PredictionTable) -> str:
    return insert_predictions(connection, "p", "", 1, table).payload


def write_alone(connection: Connection, table: PredictionTable) -> str:
    predictions.insert_entries = lambda *_: None
    return write_columns(connection, table)


def write_lists(connection: Connection, table: PredictionTable) -> str:
    arrays = (table.sets, table.p_values, table.scores, table.degrees)
    return write_columns(connection, PredictionTable(list(table.keys), table.class_names, *arrays))


def write_first(connection: Connection, table: PredictionTable) -> str:
    """As commit 3f694fd did."""
    records = table.records()
    for part in split(records):
        connection.execute(insert(prediction), [first_columns(one) for one in part])
    digest = hashlib.sha256()
    for one in sorted(records, key=lambda record: record.node_key):
        digest.update(dumps([one.node_key, one.classes, one.p_values, one.scores]).encode())
    return digest.hexdigest()


def first_columns(one: Prediction) -> dict[str, Any]:
    return {
        "project": "p", "node_key": one.node_key, "seq": 1, "size": one.size,
        "classes": dumps(one.classes), "p_values": dumps(one.p_values),
        "scores": dumps(one.scores), "degree": one.degree, "in_graph": True,
    }  # fmt: skip


WAYS: dict[str, Write] = {
    "columns": write_columns,
    "lists": write_lists,
    "alone": write_alone,
    "first": write_first,
}


def without_run(connection: Any, _record: object) -> None:
    """Let predictions stand without the row of their run, which is not what is measured."""
    connection.execute("PRAGMA foreign_keys = OFF").close()


def prepare(store: Store) -> None:
    migrate.migrate_sql(store)
    if store.dialect.name == "sqlite":
        event.listen(store.engine, "connect", without_run)
        store.engine.dispose()
        return
    with store.transaction() as connection:
        connection.execute(
            text("ALTER TABLE prediction DROP CONSTRAINT prediction_project_seq_fkey")
        )


def server_cpu_seconds(connection: Connection) -> float:
    """CPU time of the PostgreSQL process that serves this connection; 0 on SQLite."""
    if connection.dialect.name == "sqlite":
        return 0.0
    pid = connection.execute(text("SELECT pg_backend_pid()")).scalar()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(nodes: int, way: str, name: str) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        table = make_table(nodes, folder)
        url = f"sqlite:///{folder / 'audit.db'}"
        if name == "postgresql":
            url = stack.enter_context(postgres(seed=0))
        store = open_at(url)
        stack.callback(store.close)
        prepare(store)
        server = 0.0

        def write() -> str:
            nonlocal server
            with store.transaction() as connection:
                begun = server_cpu_seconds(connection)
                digest = WAYS[way](connection, table)
                server = server_cpu_seconds(connection) - begun
            return digest

        compiled_json_rows(np.zeros((1, 1)))  # a run has numba from its forward pass
        gc.collect()
        reset_peak()
        before = resident_mb()
        seconds, digest = cpu_seconds(write)
        more = peak_mb() - before
        sizes = table_sizes(store)
    arrays = sum(one.nbytes for one in (table.sets, table.p_values, table.scores, table.degrees))
    return {"store": name, "way": way, "nodes": nodes, "classes": CLASSES,
            "cpu_seconds": seconds, "server_cpu": server, "arrays_mb": arrays / 1e6,
            "more_mb": more, "store_mb": sum(one.bytes for one in sizes) / 1e6,
            "digest": digest}  # fmt: skip


def measure_apart(nodes: int, way: str, store: str) -> dict[str, Any]:
    given = ["--nodes", str(nodes), "--way", way, "--store", store]
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks.deciding", *given],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip
    row: dict[str, Any] = json.loads(told.splitlines()[-1])
    return row


def measure_store(nodes: int, store: str, turns: int) -> list[dict[str, Any]]:
    told = [[measure_apart(nodes, way, store) for way in WAYS] for _ in range(turns)]
    rows = [min(each, key=lambda row: row["cpu_seconds"]) for each in zip(*told, strict=True)]
    assert len({row.pop("digest") for row in rows}) == 1  # the same bytes
    for row in rows:
        row["x"] = rows[-1]["cpu_seconds"] / row["cpu_seconds"]
        show(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--store", choices=STORES)
    given = parser.parse_args()
    nodes = 100_000 if given.quick else given.nodes
    if given.way:
        print(json.dumps(measure(nodes, given.way, given.store)))
        return
    stores = [given.store] if given.store else STORES
    rows = [row for store in stores for row in measure_store(nodes, store, given.turns)]
    keep("deciding", rows, given.quick)


if __name__ == "__main__":
    main()
