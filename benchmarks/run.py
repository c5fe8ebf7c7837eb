"""A whole `ringfence score` with 1,000 new nodes: where each second goes, as the graph grows.

    python -m benchmarks.run [--quick | --nodes 10000 1000000 --networks gcn,sage --scores DAPS,APS]

An embedded Neo4j with 64 features and five relationships per node, SQLite as the audit store. The
classes of the first 10,000 nodes are known: a model is trained on them in a few epochs, and a fifth
of them calibrates it at every size. What was there before the first batch counts as evaluated.
Then batches of 1,000 nodes arrive and each is scored, by one project per score in turns: DAPS, the
default, and APS beside it, both within bands of degree. The first few batches warm up the
server. `--each 10` makes a denser graph, kept as a table of its own. Times are on the clock, of the
fastest batch, with the CPU seconds of ringfence and of the server beside them; `x APS` are medians
of ratios of CPU seconds taken within a batch.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.growing import EACH, Accounts, arrive, import_graph, write_files
from benchmarks.measuring import PUBLISHED_KEY, keep, show, wall_seconds
from benchmarks.server import SERVER
from ringfence.connector import mirror as mirrors
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.sync import mirror_identity
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.samples.accounts import sample_toml
from ringfence.jobs.scoring.score import RunReport, run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training

SIZES = [10_000, 100_000, 1_000_000]
KNOWN, WARM, BATCHES, NEW = 10_000, 4, 4, 1_000
SHARES = "train = 0.7\nvalidation = 0.1\ncalibration = 0.2"
READING, WRITING = "read", "write graph"


def server_cpu(pid: int) -> float:
    """CPU seconds of the server's process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(nodes: int, network: str, scores: list[str], each: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, accounts = Path(name), Accounts(np.random.default_rng(1), each=each)
        home = folder / "neo4j"
        import_graph(home, write_files(folder, accounts, nodes, KNOWN))
        server = stack.enter_context(embedded.running(home, options=SERVER))
        graph = stack.enter_context(closing(connect(server.uri, server.user, server.password)))
        environment = {**os.environ, **PUBLISHED_KEY, "RINGFENCE_NEO4J_PASSWORD": server.password}
        workspaces, trained = {}, {}
        for score in scores:
            settings = settings_file(folder / score, server.uri, network, score)
            workspace = open_workspace(load_settings(settings, environment))
            workspaces[score] = stack.enter_context(workspace)
            run_migrations(workspaces[score])
            trained[score], _ = wall_seconds(lambda one=workspaces[score]: run_training(one))
            close_known(workspaces[score])
        rows: dict[str, list[dict[str, Any]]] = {score: [] for score in scores}
        for batch in range(WARM + BATCHES):
            arrive(graph, accounts, NEW)
            for score in scores[:: 1 if batch % 2 else -1]:
                rows[score].append({"score": score, **one_batch(workspaces[score], server.pid)})
                show(rows[score][-1])
    size = {"nodes": nodes, "relationships": nodes * each, "network": network}
    return [
        {**size, **best_batch(rows[score][WARM:]), **beside(rows[score][WARM:], rows["APS"][WARM:]),
         "first_seconds": rows[score][0]["seconds"], "train_seconds": trained[score]}
        for score in scores
    ]  # fmt: skip


def best_batch(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The fastest batch on the clock, with the medians of the CPU seconds."""
    cpu = {name: median(row[name] for row in rows) for name in ("own_cpu", "server_cpu")}
    return {**min(rows, key=lambda row: row["seconds"]), **cpu}


def beside(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, float]:
    """CPU seconds of a run as multiples of those of the same batch with another score."""
    pairs = list(zip(rows, others, strict=True))
    return {
        "own_x_aps": median(a["own_cpu"] / b["own_cpu"] for a, b in pairs),
        "all_x_aps": median(total_cpu(a) / total_cpu(b) for a, b in pairs),
    }


def total_cpu(row: dict[str, Any]) -> float:
    return float(row["own_cpu"] + row["server_cpu"])


def settings_file(folder: Path, uri: str, network: str, score: str) -> Path:
    """Write a configuration that trains a few epochs, of a project of its own."""
    folder.mkdir()
    path = folder / "ringfence.toml"
    model = f'[model]\nnetwork = "{network}"\nmax_epochs = 5\n{SHARES}'
    text = sample_toml(uri, f"bench-{score}", "auto").replace("[model]", model)
    named = f'[conformal]\nscore = "{score}"\n'
    path.write_text(text.replace("[conformal]\n", named), encoding="utf-8")
    return path


def close_known(workspace: Workspace) -> None:
    """Take what is there for evaluated: the first scoring of a graph is not what is measured."""
    name = mirror_identity(workspace.graph, workspace.mapping)
    mirror = mirrors.load(workspace.mirror, name)
    assert mirror is not None
    mirror.evaluated[:] = True
    mirrors.save(mirror, workspace.mirror)


def one_batch(workspace: Workspace, pid: int) -> dict[str, Any]:
    own, theirs = time.process_time(), server_cpu(pid)
    seconds, report = wall_seconds(lambda: run_scoring(workspace))
    return {
        "new": report.new_nodes, "evaluated": report.evaluated, "seconds": seconds,
        **steps_of(report), "own_cpu": time.process_time() - own,
        "server_cpu": server_cpu(pid) - theirs, "way": report.run.notes[0],
    }  # fmt: skip


def steps_of(report: RunReport) -> dict[str, Any]:
    """Seconds per step, and the share of reading and writing the change in Neo4j."""
    spent = report.seconds
    share = (spent[READING] + spent[WRITING]) / sum(spent.values())
    return {**{f"{step} (s)": value for step, value in spent.items()}, "neo4j_share": share}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--networks", default="gcn")
    parser.add_argument("--scores", default="DAPS,APS", help="APS is among them")
    parser.add_argument("--each", type=int, default=EACH, help="relationships of a new node")
    given = parser.parse_args()
    rows, name = [], "run" if given.each == EACH else "run_dense"
    for nodes in [KNOWN] if given.quick else given.nodes:
        for network in given.networks.split(","):
            for row in measure(nodes, network, given.scores.split(","), given.each):
                rows.append(row)
                show(row)
            keep(name, rows, given.quick)


if __name__ == "__main__":
    main()
