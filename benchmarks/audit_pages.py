"""How fast the dashboard answers on a store of 1,000,000 predictions: `make bench-audit`.

    python -m benchmarks.audit_pages [predictions] [folder]

Fills a SQLite store with made-up runs (once per folder), serves it, asks each page forty times and
prints the first answer (which counts what later ones of the same server need not count again),
median and 95th percentile, on the clock and in CPU time of the process that serves; then
shows the plans of the queries that read predictions. A million are kept for the report.
"""

import statistics
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from socket import socket
from typing import Any

import uvicorn
from sqlalchemy import text

from benchmarks.measuring import keep, show
from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.load import load_values
from ringfence.jobs.dashboard.app import create_app
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.samples.audit_store import Plan, fill_store

GOAL_MS, ASKS, WHOLE = 200, 40, 1_000_000
PATHS = ("/", "/worklist", "/worklist?class=mule",
         "/worklist?class=mule&known=any&after=0.2+s%3Ax", "/worklist?class=mule&run=50&max_size=1",
         "/worklist?class=mule&group=region%3Dnorth&min_p=0.3", "/coverage",
         "/coverage?from=2020-01-01", "/classes", "/thresholds", "/drift", "/runs",
         "/runs?sort.runs=-coverage&columns.runs=seq&columns.runs=coverage", "/runs/5",
         "/runs/compare?a=1&b=5", "/models", "/models/sample-1", "/node?key=account%207-77", "/why",
         "/trail", "/metrics", "/lists", "/api/v1/lists", "/api/v1/lists?detail=true",
         "/api/v1/lists/nodes?pile=clear", "/api/v1/lists/nodes?pile=open",
         "/api/v1/status", "/csv/coverage-run")  # fmt: skip
PLANS = {
    "one node": "SELECT * FROM prediction WHERE project = 'bench' AND node_key IN ('s:a', 'i:1')",
    "a run's sets": "SELECT * FROM prediction WHERE project = 'bench' AND seq = 3",
    "coverage": "SELECT * FROM coverage WHERE project = 'bench' AND slice = 'run'",
    "worklist": "SELECT node_key, p FROM worklist_entry WHERE project = 'bench' AND class = 'mule' "
    "AND known = 0 AND (p, node_key) < (0.5, 's:x') ORDER BY p DESC, node_key DESC LIMIT 50",
    "classes of a node": "SELECT * FROM label WHERE project = 'bench' AND node_key = 's:a'",
}


def main(predictions: int, folder: Path) -> int:
    values = {
        "project": "bench",
        "neo4j": {"uri": "bolt://127.0.0.1:1"},
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
        "lists": [
            {"name": "investigate", "class": "mule", "may_be_wrong": 0.2},
            {"name": "clear", "not": "mule", "may_be_wrong": 0.03},
        ],
    }
    settings = load_values(values, folder / "ringfence.toml", {})
    store = open_store(settings.audit.url)
    if not (folder / "filled").exists():
        began = time.perf_counter()
        fill_store(store, settings, Plan(runs=100, per_run=predictions // 100))
        (folder / "filled").write_text("yes")
        print(f"filled {predictions:,} predictions in {time.perf_counter() - began:.0f} s")
    rows = _measure(settings, store)
    store_bytes = sum(path.stat().st_size for path in folder.rglob("*.db*"))
    with store.reading() as connection:
        for name, query in PLANS.items():
            plan = connection.execute(text(f"EXPLAIN QUERY PLAN {query}")).all()
            print(f"  {name}: {'; '.join(row[3] for row in plan)}")
    keep("audit_pages", rows, predictions < WHOLE, predictions=predictions,
         store_gb=round(store_bytes / 1e9, 2))  # fmt: skip
    return int(max(row["median_ms"] for row in rows) > GOAL_MS)


def _measure(settings, store) -> list[dict[str, Any]]:
    listener = socket()
    listener.bind(("127.0.0.1", 0))
    app = create_app(Dashboard(settings, store, guard_of(settings)))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.05)
    rows = []
    for path in PATHS:
        began = time.process_time()
        times = [_ask(listener.getsockname()[1], path) for _ in range(ASKS)]
        rows.append(
            {
                "page": path,
                "first_ms": round(times[0], 1),
                "median_ms": round(statistics.median(times), 1),
                "within_ms": round(statistics.quantiles(times, n=20)[-1], 1),
                "cpu_ms": round(1000 * (time.process_time() - began) / ASKS, 1),
            }
        )
        show(rows[-1])
    server.should_exit = True
    thread.join()
    return rows


def _ask(port: int, path: str) -> float:
    began = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, path
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else WHOLE
    where = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    sys.exit(main(many, where))
