"""What a living window costs a run: `window` of 5,000 nodes beside `frozen`, batch by batch.

    python -m benchmarks.window [--quick]

A graph in an embedded Neo4j and two projects on it with the same network: one calibrated by the
frozen nodes of its training at a fixed level, one by the newest 5,000 nodes of known class at an
adaptive level. Batches of 1,000 accounts arrive, both projects score each and audit the classes of
the batch before. Measured once the window is full: CPU seconds of this process and of the server
for the runs alone, medians and ratios within a batch.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.growing import Accounts, arrive, import_graph, write_files
from benchmarks.measuring import PUBLISHED_KEY, keep, show
from benchmarks.run import KNOWN, NEW, close_known, one_batch, settings_file, total_cpu
from benchmarks.server import SERVER
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.store.runs import one_run
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training

NODES, FILL, MEASURED = 100_000, 8, 6
MODES = {
    "frozen": 'calibration_set = "frozen"\nadapt = false\n',
    "window": 'calibration_set = "window"\nwindow_nodes = 5000\nadapt = true\n',
}
REVEAL = """
MATCH (n:Account) WHERE $first <= n.id < $last
SET n.kind = $kinds[n.id % size($kinds)]
"""


def measure(nodes: int, measured: int) -> list[dict[str, Any]]:
    """Return what runs cost in each mode."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, accounts = Path(name), Accounts(np.random.default_rng(1))
        home = folder / "neo4j"
        import_graph(home, write_files(folder, accounts, nodes, KNOWN))
        server = stack.enter_context(embedded.running(home, options=SERVER))
        graph = stack.enter_context(closing(connect(server.uri, server.user, server.password)))
        environment = {**os.environ, **PUBLISHED_KEY, "RINGFENCE_NEO4J_PASSWORD": server.password}
        projects: dict[str, Workspace] = {}
        for mode, lines in MODES.items():
            path = settings_file(folder / mode, server.uri, "GCN", "DAPS")
            text = path.read_text(encoding="utf-8").replace("bench-DAPS", f"bench-{mode}")
            text = text.replace("[model]", "[model]\nholdout = 0.0")
            path.write_text(
                text.replace("[conformal]\n", f"[conformal]\n{lines}"), encoding="utf-8"
            )
            workspace = open_workspace(load_settings(path, environment))
            projects[mode] = stack.enter_context(workspace)
            run_migrations(projects[mode])
            run_training(projects[mode])
            close_known(projects[mode])
        kinds = [row["kind"] for row in graph.read("MATCH (n:Account) WHERE n.kind IS NOT NULL "
                                                   "RETURN DISTINCT n.kind AS kind")]  # fmt: skip
        rows: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
        for batch in range(FILL + measured):
            _one_round(graph, accounts, projects, rows, server.pid, list(MODES)[:: (-1) ** batch])
            graph.run(REVEAL, first=accounts.size - NEW, last=accounts.size, kinds=kinds)
            for workspace in projects.values():
                run_audit(workspace)
    pairs = list(zip(rows["window"][FILL:], rows["frozen"][FILL:], strict=True))
    ratios = {
        "own_x_frozen": median(a["own_cpu"] / b["own_cpu"] for a, b in pairs),
        "all_x_frozen": median(total_cpu(a) / total_cpu(b) for a, b in pairs),
    }
    return [
        {"mode": mode, "nodes": nodes, "new": NEW, "calibration": part[-1]["calibration"],
         "own_cpu": median(row["own_cpu"] for row in part[FILL:]),
         "server_cpu": median(row["server_cpu"] for row in part[FILL:]),
         **(ratios if mode == "window" else {})}
        for mode, part in rows.items()
    ]  # fmt: skip


def _one_round(
    graph: Graph,
    accounts: Accounts,
    projects: dict[str, Workspace],
    rows: dict[str, list[dict[str, Any]]],
    pid: int,
    order: list[str],
) -> None:
    """A batch arrives and each project scores it, in turns."""
    arrive(graph, accounts, NEW)
    for mode in order:
        workspace = projects[mode]
        found = one_batch(workspace, pid)
        seq = len(rows[mode]) + 1
        found["calibration"] = one_run(workspace.store, workspace.project, seq).n_calibration
        rows[mode].append(found)
        show({"mode": mode, **found})


def main() -> None:
    """Measure, show, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rows = measure(KNOWN if given.quick else NODES, 4 if given.quick else MEASURED)
    for row in rows:
        show(row)
    keep("window", rows, given.quick)


if __name__ == "__main__":
    main()
