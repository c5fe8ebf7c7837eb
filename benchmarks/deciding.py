"""A run's predictions and worklist into SQL: three ways in turns, on SQLite and PostgreSQL.

    python -m benchmarks.deciding [--quick | --nodes 1000000]

What is timed is all that happens inside the transaction that decides a run: JSON, digests, rows.
`columns` is what the product does (tuples for SQLite's driver, COPY for PostgreSQL), `statements`
gives the same columns to SQLAlchemy as a dict per row, `records` makes a record per node and
a text per record first. CPU seconds of this process (SQLite's own work is in it, that of the
PostgreSQL server is not); the peak is that of a process of its own for each way.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import event, text

from benchmarks.measuring import cpu_seconds, keep, show
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.store import migrate
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.dialects.base import Dialect
from ringfence.connector.store.engine import Store
from ringfence.connector.store.predictions import insert_predictions
from tests.faults.servers import postgres
from tests.stores import open_at

CLASSES, CALIBRATION = 10, 2_000
STORES = ("sqlite", "postgresql")
WAYS = ("columns", "statements", "records")
TURNS = 2


def make_table(nodes: int) -> PredictionTable:
    rng = np.random.default_rng(1)
    p = rng.integers(1, CALIBRATION + 2, (nodes, CLASSES)) / (CALIBRATION + 1)
    keys = [f"i:{i}" for i in rng.permutation(nodes).tolist()]
    names = tuple(f"class {i}" for i in range(CLASSES))
    scores = -rng.random((nodes, CLASSES))
    return PredictionTable(keys, names, p > 0.85, p, scores, rng.integers(0, 99, nodes))


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


def use_statements(name: str) -> None:
    """Let the engine write as an engine without a faster way does."""
    type(DIALECTS[name]).insert_columns = Dialect.insert_columns  # type: ignore[method-assign]


def measure(nodes: int, way: str, name: str) -> dict[str, Any]:
    table = make_table(nodes)
    if way != "columns":
        use_statements(name)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = f"sqlite:///{Path(folder) / 'audit.db'}"
        if name == "postgresql":
            url = stack.enter_context(postgres(seed=0))
        store = open_at(url)
        stack.callback(store.close)
        prepare(store)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def write() -> str:
            with store.transaction() as connection:
                given = table.records() if way == "records" else table
                return insert_predictions(connection, "p", "", 1, given).payload

        seconds, digest = cpu_seconds(write)
        with store.reading() as connection:
            count = connection.execute(text("SELECT count(*) FROM worklist_entry")).scalar()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"store": name, "way": way, "nodes": nodes, "classes": CLASSES, "entries": count,
            "cpu_seconds": seconds, "more_mb": (peak - before) / 1e3, "digest": digest}  # fmt: skip


def measure_apart(nodes: int, way: str, store: str) -> dict[str, Any]:
    given = ["--nodes", str(nodes), "--way", way, "--store", store]
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks.deciding", *given],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip
    row: dict[str, Any] = json.loads(told.splitlines()[-1])
    return row


def measure_store(nodes: int, store: str) -> list[dict[str, Any]]:
    turns = [[measure_apart(nodes, way, store) for way in WAYS] for _ in range(TURNS)]
    rows = [min(each, key=lambda row: row["cpu_seconds"]) for each in zip(*turns, strict=True)]
    assert len({(row.pop("digest"), row["entries"]) for row in rows}) == 1  # the same bytes
    for row in rows:
        row["x"] = rows[-1]["cpu_seconds"] / row["cpu_seconds"]
        show(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--store", choices=STORES)
    given = parser.parse_args()
    nodes = 100_000 if given.quick else given.nodes
    if given.way:
        print(json.dumps(measure(nodes, given.way, given.store)))
        return
    rows = [row for store in STORES for row in measure_store(nodes, store)]
    keep("deciding", rows, given.quick)


if __name__ == "__main__":
    main()
