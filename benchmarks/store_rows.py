"""The audit store by the number of its predictions: what questions cost, and what tables take.

    python -m benchmarks.store_rows [--quick | --rows 1000000 3000000] [--store postgresql]

A store is filled with 100 large runs (as ringfence decides them) and a last one of 1,000 nodes; of
the large ones the class of every sixteenth node is known, and has joined the calibration. Then each
question is asked by the product's own functions, as a run, a page, an audit or `prune` asks it:
medians of five (fewer where they take long), milliseconds on the clock. `by run` is the index of a
run's predictions as it is, with their keys; `without keys` (up to a million rows) as it was, where
a block of the newest run had to be found among all predictions. What does not grow with the rows
needs no partitions. `first` and `last` are the seconds that deciding the first and the last large
run took, per 100,000 nodes. Sizes are megabytes of tables and of their indexes. Rows of other
stores and sizes that were measured before are kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text

from benchmarks.measuring import RESULTS, keep, show
from ringfence.connector.key_column import KeyColumn
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Label, Member, RunFacts
from ringfence.connector.store import labels, migrate, predictions, runs
from ringfence.connector.store.calibration.calibration_digest import seal_by_text
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.models import record_model
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.sizes import table_sizes
from ringfence.connector.store.queries.worklist import WorklistFilter, read_worklist
from ringfence.connector.store.retention.old_runs import old_runs
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.tallies import tallies
from ringfence.connector.store.writer import Writer
from ringfence.jobs.scoring.calibration.calibration_set import CalibrationSet, choose_calibration
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.models.calibration.sets.window_set import WINDOW
from tests.faults.servers import postgres
from tests.stores import open_at

RUNS, LAST, ASKS, BLOCK = 100, 1_000, 5, 1_000
ENOUGH_SECONDS = 30.0  # a question that took so long altogether is not asked again
MOST_WITHOUT_KEYS = 1_000_000
NAME = "store_rows"
FRESH = count(1 << 40, LAST)  # numbers of nodes that no store has
NAMES = ("a", "b", "c", "d")
STORES = ("sqlite", "postgresql")
WITHOUT_KEYS = (
    "DROP INDEX prediction_by_run",
    "CREATE INDEX prediction_by_run ON prediction (project, seq)",
)
KNOW = """
UPDATE prediction SET label = 'a', labelled_ns = :now, covered = (size > 1),
  covered_naive = (size > 1), unseen = (size < 0)
WHERE project = 'bench' AND seq = :seq AND node_key LIKE '%0'
"""
JOIN = """
INSERT INTO joined (project, version, node_key, seq, evaluated_seq, label)
SELECT project, 'm', node_key, :seq + 1, seq, label FROM prediction
WHERE project = 'bench' AND seq = :seq AND label IS NOT NULL
"""


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


def fill(store: Store, writer: Writer, rows: int) -> tuple[float, float]:
    """Fill a store; return the seconds of its first and last large run, per 100,000 nodes."""
    manifest = '{"classes": ["a", "b", "c", "d"]}'
    record_model(writer, "m", manifest, "digest", [Member("i:1", "calibration", 0)])
    sizes, taken = [rows // RUNS] * RUNS + [LAST], []
    for number, nodes in enumerate(sizes):
        one = decision(nodes, sum(sizes[:number]), number)
        begun = time.perf_counter()
        seq = runs.decide(writer, one)
        taken.append((time.perf_counter() - begun) * 1e5 / nodes)
        runs.close_run(writer, seq, (), {})
        if number:  # the last large run has classes before the newest one is decided
            with store.transaction() as connection:
                now = store.now_ns(connection)
                connection.execute(text(KNOW), {"seq": seq - 1, "now": now})
                connection.execute(text(JOIN), {"seq": seq - 1})
    if store.dialect.name == "postgresql":  # as its own daemon does after so many rows
        with store.transaction() as connection:
            connection.execute(text("ANALYZE"))
    return taken[0], taken[RUNS - 1]


def questions(store: Store, writer: Writer) -> dict[str, Callable[[], Any]]:
    """What is asked, by whom: pages, a run, an audit, `prune`; the last two of them write."""
    queries, counts = ProjectQueries(store, "bench"), {"m": len(NAMES)}
    some = next(iter(predictions.payload_keys(store, "bench", 7, 1)))
    newest = runs.next_seq(store, "bench") - 1
    blocks = chain.from_iterable(
        predictions.payload_keys(store, "bench", seq, BLOCK) for seq in range(9, RUNS)
    )
    return {
        "newest run": lambda: list(predictions.payload(store, "bench", newest, BLOCK)),
        "block of a large run": lambda: next(predictions.payload(store, "bench", 7, BLOCK)),
        "worklist page": lambda: read_worklist(queries, WorklistFilter("b")),
        "one node": lambda: predictions.some_predictions(store, "bench", some),
        "who was evaluated since": lambda: predictions.evaluated_keys(store, "bench", newest - 1),
        "who may calibrate": lambda: _choose(store),
        "all who are known, read": lambda: KnownNodes(store, "bench", "m").all(),
        "seal of who joined": lambda: _seal(store),
        "1,000 open": lambda: next(labels.pending(store, "bench", BLOCK)),
        "coverage, counted anew": lambda: tallies(store, "bench", counts),
        "coverage by class": lambda: tallies(store, "bench", counts, "class"),
        "runs to prune": lambda: old_runs(store, "bench", 1 << 62),
        "classes of 1,000": lambda: _learn(writer, blocks),
        "decide 1,000": lambda: runs.decide(writer, decision(LAST, next(FRESH), 1)),
    }


def _choose(store: Store) -> CalibrationSet:
    return choose_calibration(
        [Member("i:1", "calibration", 0)], KnownNodes(store, "bench", "m"),
        run_counts(store, "bench"), NAMES, kind=WINDOW, window_nodes=5_000,
        promised=(), eligible=Eligibility("m"),
    )  # fmt: skip


def _seal(store: Store) -> str:
    with store.reading() as connection:
        return seal_by_text(connection, "bench", "m")


def _learn(writer: Writer, blocks: Iterator[list[str]]) -> None:
    known = [Label(key, "b", True, True, False, None) for key in next(blocks)]
    labels.record_labels(writer, known)


def ask(work: Callable[[], Any]) -> float:
    taken: list[float] = []
    while len(taken) < ASKS and sum(taken) < 1e3 * ENOUGH_SECONDS:
        start = time.perf_counter()
        work()
        taken.append(1e3 * (time.perf_counter() - start))
    return float(np.median(taken))


def measure(rows: int, name: str) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'audit.db'}"
        if name == "postgresql":
            url = stack.enter_context(postgres(seed=0))
        store = open_at(url)
        stack.callback(store.close)
        migrate.migrate_sql(store)
        held = acquire(store, "bench", "benchmark", 36_000)
        stack.callback(lambda: release(store, held))
        writer = Writer(store, held, b"key")
        first, last = fill(store, writer, rows)
        filled = {"first s": first, "last s": last}
        told = [_row(name, rows, "by run", store, writer) | filled]
        show(told[0])
        if rows <= MOST_WITHOUT_KEYS:
            with store.transaction() as connection:
                for statement in WITHOUT_KEYS:
                    connection.execute(text(statement))
            told.append(_row(name, rows, "without keys", store, writer))
            show(told[1])
    return told


def ask_filled(url: str) -> dict[str, Any]:
    """Ask a store whose filling was interrupted: what it holds by now are its rows."""
    store = open_at(url)
    with store.transaction() as connection:
        connection.execute(text("DELETE FROM lease WHERE project = 'bench'"))
        connection.execute(text("ANALYZE"))
        rows = connection.execute(text("SELECT count(*) FROM prediction")).scalar_one()
    writer = Writer(store, acquire(store, "bench", "benchmark", 36_000), b"key")
    runs.decide(writer, decision(LAST, next(FRESH), 1))  # the newest run, as of a whole filling
    row = _row(store.dialect.name, int(rows), "by run", store, writer)
    show(row)
    store.close()
    return row


def _row(name: str, rows: int, index: str, store: Store, writer: Writer) -> dict[str, Any]:
    row: dict[str, Any] = {"store": name, "rows": rows, "index": index}
    sizes = table_sizes(store, max_scanned_bytes=1e12)
    for table in ("prediction", "worklist_entry", "joined"):
        own = [one for one in sizes if one.table == table]
        row[f"{table} MB"] = sum(one.bytes for one in own if not one.index) / 1e6
        row[f"{table} indexes MB"] = sum(one.bytes for one in own if one.index) / 1e6
    for what, work in questions(store, writer).items():
        row[f"{what} ms"] = ask(work)
        print(f"{name} {rows:,} {index}: {what} {row[f'{what} ms']:.4g} ms", flush=True)
    return row


def known_rows() -> dict[tuple[str, int, str], dict[str, Any]]:
    """What was measured before, by store, size and index."""
    path = RESULTS / f"{NAME}.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {(row["store"], row["rows"], row["index"]): row for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--store", choices=STORES)
    parser.add_argument("--ask", metavar="URL", help="a store that an interrupted filling left")
    given = parser.parse_args()
    found = {} if given.quick else known_rows()
    if given.ask:
        row = ask_filled(given.ask)
        found[row["store"], row["rows"], row["index"]] = row
        keep(NAME, list(found.values()), given.quick)
        return
    for store in [given.store] if given.store else STORES:
        for rows in [50_000] if given.quick else given.rows:
            for row in measure(rows, store):
                found[row["store"], row["rows"], row["index"]] = row
            keep(NAME, list(found.values()), given.quick)


if __name__ == "__main__":
    main()
