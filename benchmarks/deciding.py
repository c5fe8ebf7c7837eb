"""A run's predictions into SQL: columns beside one record per node, in turns, on SQLite.

    python -m benchmarks.deciding [--quick | --nodes 1000000]

What is timed is all that happens inside the transaction that decides a run: JSON, digests, rows.
`rows by record` makes a record per node and a text per record, as they were written before.
CPU seconds of one thread; the peak is that of a process of its own for each way.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import event

from benchmarks.measuring import cpu_seconds, keep, show
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.store import migrate
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.predictions import insert_predictions

CLASSES, CALIBRATION = 10, 2_000
WAYS = ("columns", "rows by record")


def make_table(nodes: int) -> PredictionTable:
    rng = np.random.default_rng(1)
    p = rng.integers(1, CALIBRATION + 2, (nodes, CLASSES)) / (CALIBRATION + 1)
    keys = [f"i:{i}" for i in rng.permutation(nodes).tolist()]
    names = tuple(f"class {i}" for i in range(CLASSES))
    scores = -rng.random((nodes, CLASSES))
    return PredictionTable(keys, names, p > 0.65, p, scores, rng.integers(0, 99, nodes))


def without_run(connection: Any, _record: object) -> None:
    """Let predictions stand without the row of their run, which is not what is measured."""
    connection.execute("PRAGMA foreign_keys = OFF").close()


def measure(nodes: int, way: str) -> dict[str, Any]:
    table = make_table(nodes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'audit.db'}")
        migrate.migrate_sql(store)
        event.listen(store.engine, "connect", without_run)
        store.engine.dispose()

        def write() -> str:
            with store.transaction() as connection:
                given = table if way == "columns" else table.records()
                return insert_predictions(connection, "p", 1, given).payload

        seconds, digest = cpu_seconds(write)
        store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"way": way, "nodes": nodes, "classes": CLASSES, "cpu_seconds": seconds,
            "more_mb": (peak - before) / 1e3, "digest": digest}  # fmt: skip


def measure_apart(nodes: int, way: str) -> dict[str, Any]:
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks.deciding", "--nodes", str(nodes), "--way", way],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    row: dict[str, Any] = json.loads(told.splitlines()[-1])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--way", choices=WAYS)
    given = parser.parse_args()
    nodes = 100_000 if given.quick else given.nodes
    if given.way:
        print(json.dumps(measure(nodes, given.way)))
        return
    rows = [min((measure_apart(nodes, way) for _ in range(2)), key=lambda r: r["cpu_seconds"])
            for way in WAYS]  # fmt: skip
    assert len({row.pop("digest") for row in rows}) == 1  # both ways write the same bytes
    for row in rows:
        row["x"] = rows[-1]["cpu_seconds"] / row["cpu_seconds"]
        show(row)
    keep("deciding", rows, given.quick)


if __name__ == "__main__":
    main()
