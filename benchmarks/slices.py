"""What comparing a slice of the mirror costs a read that finds nothing new.

    python -m benchmarks.slices [--quick | --nodes 100000]

An embedded Neo4j with 64 features and five relationships per node. Each round reads once for every
size of the slice (`[engine] check_nodes`), in turn; medians of the rounds: time on the clock, CPU
seconds of ringfence and of the server.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.growing import Accounts, import_graph, write_files
from benchmarks.measuring import keep, show, wall_seconds
from benchmarks.run import server_cpu
from benchmarks.server import SERVER
from ringfence.connector import mirror as mirrors
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.samples.accounts import sample_toml

CHECKED = (0, 250, 500, 1_000, 2_000)
ROUNDS = 21


def measure(nodes: int, rounds: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder, accounts = Path(name), Accounts(np.random.default_rng(1))
        home, config = folder / "neo4j", folder / "ringfence.toml"
        import_graph(home, write_files(folder, accounts, nodes, 1_000))
        with (
            embedded.running(home, options=SERVER) as server,
            closing(connect(server.uri, server.user, server.password)) as graph,
        ):
            config.write_text(sample_toml(server.uri, "bench"), encoding="utf-8")
            mapping = load_settings(config).mapping()
            key, label = mapping.classified.key, mapping.classified.label
            graph.run(f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{label}) REQUIRE n.{key} IS UNIQUE")
            reader = GraphReader(graph, mapping, folder / "mirror", 10_000, 5.0)
            mirrors.save(sync_mirror(reader).mirror, reader.folder)
            return measure_rounds(reader, server.pid, rounds)


def measure_rounds(reader: GraphReader, pid: int, rounds: int) -> list[dict[str, Any]]:
    spent: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for _ in range(rounds + 3):
        for size in CHECKED:
            own, theirs = time.process_time(), server_cpu(pid)
            sized = with_size(reader, size)
            seconds, read = wall_seconds(partial(sync_mirror, sized))
            assert (read.rebuilt, read.note) == ("", "")
            spent[size].append((seconds, time.process_time() - own, server_cpu(pid) - theirs))
            mirrors.save(read.mirror, reader.folder)
    rows = []
    for size in CHECKED:
        wall, own_cpu, their_cpu = (median(of) for of in zip(*spent[size][3:], strict=True))
        runs = -(-1_000_000 // size) if size else None
        row = {"check_nodes": size, "seconds": wall, "own_cpu": own_cpu, "server_cpu": their_cpu}
        rows.append(row | {"runs_for_a_million": runs})
    return rows


def with_size(reader: GraphReader, size: int) -> GraphReader:
    fields = (reader.graph, reader.mapping, reader.folder, reader.rows, reader.overlap_seconds)
    return GraphReader(*fields, check_nodes=size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=100_000)
    given = parser.parse_args()
    nodes, rounds = (20_000, 5) if given.quick else (given.nodes, ROUNDS)
    rows = [{"nodes": nodes, **row} for row in measure(nodes, rounds)]
    for row in rows:
        show(row)
    keep("slices", rows, given.quick)


if __name__ == "__main__":
    main()
