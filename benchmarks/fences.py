"""Writers to Neo4j: one, two at one fence, two with a fence each; is it the fence that limits?

    python -m benchmarks.fences [--quick | --nodes N]

Every transaction that ringfence writes first takes the lock of its project's fence node, so two
writers of one project take turns. Here threads write the same prediction sets (3.5 classes on
average) in blocks of 1,000 nodes, each a part of the nodes: `one fence` as the product would,
`own fences` with a node per writer, `own classes` also with class nodes and a run of their own, so
that no node is shared. The blocks are made ready before the clock starts. Ways take turns; the
first round isn't counted. Seconds are on the clock, `server CPU` is that of the Neo4j process: a
server that is busy on all cores with one writer has nothing left for a second one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.measuring import keep, show, wall_seconds
from benchmarks.server import SERVER
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.neo4j.migrate import create_user_indexes, migrate_graph
from ringfence.connector.neo4j.write import prediction_sets
from ringfence.connector.neo4j.write.prediction_sets import PreparedSets
from ringfence.connector.store.lease import Lease
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING

ROUNDS, BLOCK, WRITERS = 5, 1_000, 2
CLASSES = [f"class {i}" for i in range(10)]
HELD = Lease("bench", "benchmark", 1, 60.0)
CLEAR = """
MATCH ()-[r:MAY_BE|EVALUATED]->() CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
"""
COUNT = "MATCH ()-[r:MAY_BE|EVALUATED]->() RETURN count(r) AS n"


def drawn(nodes: int) -> list[PreparedSets]:
    """Blocks of sets, ready to be sent."""
    rng = np.random.default_rng(1)
    blocks = []
    for start in range(0, nodes, BLOCK):
        rows: list[Any] = []
        for i in range(start, min(nodes, start + BLOCK)):
            inside = sorted(rng.choice(10, int(rng.integers(1, 7)), replace=False).tolist())
            p = rng.random(10).round(4).tolist()
            names = tuple(CLASSES[place] for place in inside)
            told = {"project": "bench", "node_key": f"i:{i}", "size": len(names), "band": ""}
            rows.append(SimpleNamespace(**told, p_values=p, classes=names))
        blocks.append(prediction_sets.prepare_sets(rows, CLASSES))
    return blocks


def run_of(project: str) -> Any:
    return SimpleNamespace(
        project=project, seq=1, decided_ns=0, rule="NodeEx", alpha=0.1, level=0.1, threshold=0.0,
        promise="marginal", n_calibration=1, model="m",
    )  # fmt: skip


def write(graph: Graph, held: Lease, project: str, blocks: list[PreparedSets]) -> None:
    """As `jobs.project.apply` does, for a part of a run's blocks."""
    run = run_of(project)
    prediction_sets.write_run(graph, held, run, CLASSES)
    for sets in blocks:
        if prediction_sets.write_sets(graph, held, SAMPLE_MAPPING, run, sets):
            raise SystemExit("nodes are missing")


def one_writer(graph: Graph, blocks: list[PreparedSets]) -> None:
    write(graph, HELD, "bench", blocks)


def two_writers(own_fence: bool, own_nodes: bool) -> Callable[[Graph, list[PreparedSets]], None]:
    def work(graph: Graph, blocks: list[PreparedSets]) -> None:
        with ThreadPoolExecutor(WRITERS) as threads:
            waits = []
            for number in range(WRITERS):
                held = replace(HELD, project=f"bench {number}") if own_fence else HELD
                project = f"bench {number}" if own_nodes else "bench"
                part = blocks[number::WRITERS]
                waits.append(threads.submit(write, graph, held, project, part))
            for one in waits:
                one.result()

    return work


WAYS = {
    "one writer": one_writer,
    "two writers, one fence": two_writers(own_fence=False, own_nodes=False),
    "two writers, own fences": two_writers(own_fence=True, own_nodes=False),
    "two writers, own fences, own classes": two_writers(own_fence=True, own_nodes=True),
}


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(
    graph: Graph, pid: int, nodes: int, rounds: int
) -> dict[str, list[tuple[float, float]]]:
    blocks, found = drawn(nodes), {way: [] for way in WAYS}  # type: dict[str, list[Any]]
    expected = sum(1 + len(row[3]) for one in blocks for row in one.rows)
    for _ in range(rounds):
        for way, work in WAYS.items():
            before = cpu_of(pid)
            seconds, _ = wall_seconds(lambda work=work: work(graph, blocks))  # type: ignore[misc]
            found[way].append((seconds, cpu_of(pid) - before))
            if graph.read(COUNT)[0]["n"] != expected:
                raise SystemExit(f"{way}: not all sets are in the graph")
            graph.run_in_parts(CLEAR)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=40_000)
    given = parser.parse_args()
    nodes, rounds = (4_000, 2) if given.quick else (given.nodes, ROUNDS)
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded.running(Path(folder), options=SERVER) as server,
    ):
        graph = connect(server.uri, server.user, server.password)
        migrate_graph(graph)
        create_user_indexes(graph, SAMPLE_MAPPING)
        graph.run("UNWIND range(0, $n - 1) AS i CREATE (:Account {id: i})", n=nodes)
        found = measure(graph, server.pid, nodes, rounds)
        graph.close()
    first = found["one writer"]
    table = [
        {
            "way": way, "nodes": nodes,
            "sets_per_s": float(np.median([nodes / wall for wall, _ in told[1:]])),
            "x": float(np.median([a / b for (a, _), (b, _) in zip(first, told, strict=True)][1:])),
            "server_cpu_s": float(np.median([cpu for _, cpu in told[1:]])),
        }
        for way, told in found.items()
    ]  # fmt: skip
    for row in table:
        show(row)
    keep("fences", table, given.quick, cores=os.cpu_count())


if __name__ == "__main__":
    main()
