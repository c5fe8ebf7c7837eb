"""The audit store by the number of its predictions: what questions cost, and what tables take.

    python -m benchmarks.store_rows [--quick | --rows 1000000 3000000] [--store postgresql]

A store is filled with 100 large runs (as ringfence decides them) and a last one of 1,000 nodes;
then each question is asked by the product's own functions, as a run, a page or an audit asks it:
medians of five, milliseconds on the clock. `by run` is the index of a run's predictions as it is,
with their keys; `without keys` as it was, where a block of the newest run had to be found among all
predictions. What does not grow with the rows needs no partitions. Sizes are megabytes of all
tables with their indexes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text

from benchmarks.measuring import keep, show
from ringfence.connector.key_texts import KeyColumn
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Member, RunFacts
from ringfence.connector.store import migrate, predictions, runs
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.models import record_model
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sizes import table_sizes
from ringfence.connector.store.queries.worklist import WorklistFilter, read_worklist
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.tallies import tallies
from ringfence.connector.store.writer import Writer
from tests.faults.servers import postgres
from tests.stores import open_at

RUNS, LAST, ASKS, BLOCK = 100, 1_000, 5, 1_000
NAMES = ("a", "b", "c", "d")
STORES = ("sqlite", "postgresql")
WITHOUT_KEYS = (
    "DROP INDEX prediction_by_run",
    "CREATE INDEX prediction_by_run ON prediction (project, seq)",
)


def facts(nodes: int) -> RunFacts:
    return RunFacts(
        started_ns=1, watermark_from_ns=None, watermark_to_ns=2, rule="NodeEx", score="APS",
        alpha=0.1, threshold=-0.9, threshold_node=-0.9, threshold_edge=-0.9, threshold_naive=-0.9,
        n_calibration=999, effective_calibration=999.0, n_evaluated=nodes, n_waiting=0,
        n_already_known=0, n_quarantined=0, n_nodes=nodes, n_relationships=nodes, model="m",
        config="c", software="s", notes=(), calibration_scores=(-0.9,), watch=None, alphas=(0.1,),
        level=0.1, lowest_level=0.1, n_thresholds=1,
    )  # fmt: skip


def decision(nodes: int, first: int, seed: int) -> Decision:
    """Nodes whose keys lie anywhere among those of other runs, as names of things do."""
    rng = np.random.default_rng(seed)
    spread = np.arange(first, first + nodes, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    raw = "".join([f"s:{number:016x}" for number in spread.tolist()]).encode()
    ends = np.arange(1, nodes + 1, dtype=np.int64) * 18
    keys = KeyColumn(np.frombuffer(raw, np.uint8), ends, np.arange(nodes))
    p = rng.integers(1, 1_001, (nodes, len(NAMES))) / 1_000
    table = PredictionTable(keys, NAMES, p > 0.7, p, p - 1.0, rng.integers(0, 99, nodes))
    return Decision(facts(nodes), table, [])


def fill(store: Store, rows: int) -> None:
    migrate.migrate_sql(store)
    held = acquire(store, "bench", "benchmark", 3_600)
    writer = Writer(store, held, b"key")
    manifest = '{"classes": ["a", "b", "c", "d"]}'
    record_model(writer, "m", manifest, "digest", [Member("i:1", "calibration", 0)])
    sizes = [rows // RUNS] * RUNS + [LAST]
    for number, nodes in enumerate(sizes):
        seq = runs.decide(writer, decision(nodes, sum(sizes[:number]), number))
        runs.close_run(writer, seq, (), {})
    release(store, held)
    if store.dialect.name == "postgresql":  # as its own daemon does after so many rows
        with store.transaction() as connection:
            connection.execute(text("ANALYZE"))


def questions(store: Store) -> dict[str, Callable[[], Any]]:
    queries = ProjectQueries(store, "bench")
    some = next(iter(predictions.payload_keys(store, "bench", 7, 1)))
    return {
        "newest run": lambda: list(predictions.payload(store, "bench", RUNS + 1, BLOCK)),
        "block of a large run": lambda: next(predictions.payload(store, "bench", 7, BLOCK)),
        "worklist page": lambda: read_worklist(queries, WorklistFilter("b")),
        "one node": lambda: predictions.some_predictions(store, "bench", some),
        "who was evaluated since": lambda: predictions.evaluated_keys(store, "bench", RUNS),
        "coverage, counted anew": lambda: tallies(store, "bench", {"m": len(NAMES)}),
    }


def ask(work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(ASKS):
        start = time.perf_counter()
        work()
        taken.append(1e3 * (time.perf_counter() - start))
        if taken[-1] > 20_000:
            break
    return float(np.median(taken))


def measure(rows: int, name: str) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'audit.db'}"
        if name == "postgresql":
            url = stack.enter_context(postgres(seed=0))
        store = open_at(url)
        stack.callback(store.close)
        fill(store, rows)
        sizes = table_sizes(store, max_scanned_bytes=1e12)
        told = [_row(name, rows, "by run", store, sizes)]
        with store.transaction() as connection:
            for statement in WITHOUT_KEYS:
                connection.execute(text(statement))
        told.append(_row(name, rows, "without keys", store, table_sizes(store, 1e12)))
    return told


def _row(name: str, rows: int, index: str, store: Store, sizes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"store": name, "rows": rows, "index": index}
    row |= {f"{what} ms": ask(work) for what, work in questions(store).items()}
    for table in ("prediction", "worklist_entry"):
        own = [one for one in sizes if one.table == table]
        row[f"{table} MB"] = sum(one.bytes for one in own if not one.index) / 1e6
        row[f"{table} indexes MB"] = sum(one.bytes for one in own if one.index) / 1e6
    show(row)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--store", choices=STORES)
    given = parser.parse_args()
    rows = [50_000] if given.quick else given.rows
    stores = [given.store] if given.store else STORES
    found = [row for store in stores for n in rows for row in measure(n, store)]
    keep("store_rows", found, given.quick)


if __name__ == "__main__":
    main()
