"""What a shadow costs: whole runs of one project with and without `[model] shadow`, in turns.

    python -m benchmarks.shadow [--quick] [--seconds 300]

A graph in an embedded Neo4j, an active version and a candidate of the same network. Each batch of
new accounts is one run; every second one has a shadow. CPU seconds are those of this process and of
the server; medians over the batches after the first ones, ratios of neighbouring runs. No pair of
runs is begun after `--seconds`, once MIN_PAIRS are measured.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.growing import Accounts, arrive, import_graph, write_files
from benchmarks.measuring import PUBLISHED_KEY, keep, show
from benchmarks.run import KNOWN, NEW, close_known, one_batch, settings_file, total_cpu
from benchmarks.server import SERVER
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import connect
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training

NODES, QUICK_NODES, WARM, PAIRS, MIN_PAIRS = 50_000, 20_000, 2, 6, 3


def measure(nodes: int, pairs: int, seconds: float) -> dict[str, Any]:
    """Return what runs cost with and without a shadow."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, accounts = Path(name), Accounts(np.random.default_rng(1))
        home = folder / "neo4j"
        say(began, f"importing {nodes:,} nodes")
        import_graph(home, write_files(folder, accounts, nodes, KNOWN))
        server = stack.enter_context(embedded.running(home, options=SERVER))
        graph = stack.enter_context(closing(connect(server.uri, server.user, server.password)))
        environment = {**os.environ, **PUBLISHED_KEY, "RINGFENCE_NEO4J_PASSWORD": server.password}
        settings = settings_file(folder / "project", server.uri, "GCN", "DAPS")
        text = settings.read_text(encoding="utf-8")
        settings.write_text(text.replace("[model]", "[model]\nholdout = 0.0"), encoding="utf-8")
        workspace = stack.enter_context(open_workspace(load_settings(settings, environment)))
        run_migrations(workspace)
        for role in ("active", "candidate"):
            say(began, f"training the {role} version")
            run_training(workspace)
        close_known(workspace)
        rows: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for pair in range(WARM + pairs):
            if pair >= WARM + MIN_PAIRS and time.monotonic() - began > seconds:
                say(began, f"no further pair is begun after {seconds:g} s")
                break
            for shadow in (False, True):
                arrive(graph, accounts, NEW)
                rows[shadow].append(one_batch(with_shadow(workspace, shadow), server.pid))
                cost = total_cpu(rows[shadow][-1])
                say(began, f"run {'with' if shadow else 'without'} a shadow: {cost:.2f} CPU s")
    plain, beside = rows[False][WARM:], rows[True][WARM:]
    both = list(zip(beside, plain, strict=True))
    return {
        "nodes": nodes,
        "new": NEW,
        "pairs": len(both),
        "own_cpu": median(row["own_cpu"] for row in plain),
        "own_cpu_with_shadow": median(row["own_cpu"] for row in beside),
        "own_x": median(a["own_cpu"] / b["own_cpu"] for a, b in both),
        "all_x": median(total_cpu(a) / total_cpu(b) for a, b in both),
    }


def say(began: float, words: str) -> None:
    """Print what is being done, as it goes."""
    print(f"{time.monotonic() - began:6.0f} s  {words}", flush=True)


def with_shadow(workspace: Workspace, shadow: bool) -> Workspace:
    """Return the workspace with `[model] shadow` so."""
    model = workspace.settings.model.model_copy(update={"shadow": shadow})
    return replace(workspace, settings=workspace.settings.model_copy(update={"model": model}))


def main() -> None:
    """Measure, show, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=300.0)
    given = parser.parse_args()
    nodes, pairs = (QUICK_NODES, MIN_PAIRS) if given.quick else (NODES, PAIRS)
    row = measure(nodes, pairs, given.seconds)
    show(row)
    keep("shadow", [row], given.quick)


if __name__ == "__main__":
    main()
