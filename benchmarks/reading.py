"""Reading a whole graph: ringfence beside loops over rows, by two drivers and py2neo.

    python -m benchmarks.reading [--quick | --nodes N]

Nodes with 64-float lists, the same numbers as byte arrays, and five relationships each, in an
embedded Neo4j as a lasting server has it. Every way reads the same rows, one after the other, the
rounds interleaved; the least time on the clock counts. ringfence reads as a first read does, in two
streams; `floor` lets the server touch the same values in one query and return one row. The plain
driver and py2neo run in processes of their own, without the Rust extension for the first. MB/s
counts eight bytes per number, as the lists are stored. `several labels` reads the lists as a column
of `[[graph.nodes]]`, which the mirror keeps as records of text; `record_cpu_s` is what writing
these takes without any server. The CPU seconds are those of ringfence's own process; the seconds
per million nodes are what a first read takes on the clock, with their relationships.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT, keep, show, wall_seconds
from benchmarks.row_loops import WAYS
from benchmarks.server import FEATURES, filled, running
from ringfence.connector.mapping import VECTOR, ColumnMapping, GraphMapping
from ringfence.connector.mirror import CLASSIFIED
from ringfence.connector.mirror.raw_table import encode_columns
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.embedded import ServerOptions
from ringfence.connector.neo4j.read.counts import count_graph
from ringfence.connector.neo4j.read.properties import create_mirror
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.whole import choose_anchors, read_all_relations
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING

FLOOR_NODES = "MATCH (n:Account) RETURN sum(size(n.features)), count(n.kind), max(n.created_at)"
FLOOR_LINKS = "MATCH (a:Account)-[:PAID]->(b:Account) RETURN sum(a.id), sum(b.id)"
PACK = "UNWIND $rows AS row MATCH (n:Account {id: row[0]}) SET n.packed = row[1]"
LISTS = SAMPLE_MAPPING
BYTES = replace(
    LISTS, nodes=(replace(LISTS.classified, columns=(ColumnMapping("packed", VECTOR),)),)
)
SEVERAL = replace(LISTS, features_are_strict=False)
OURS = {"ringfence, lists": LISTS, "ringfence, bytes": BYTES, "ringfence, several labels": SEVERAL}
LASTING = ServerOptions(heap="1g", page_cache="512m", quick=False)
BLOCK = 10_000
WARM_UP_READS = 20  # before anything is timed: a lasting server has compiled what it runs


def in_a_process(way: str, graph: Graph, password: str) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.row_loops", way, graph.uri]
    done = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True,
        env={**os.environ, "BENCH_PASSWORD": password},
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def ours(graph: Graph, mapping: GraphMapping) -> dict[str, float]:
    """Both reads as a first read does them, the rows ending in a mirror's files."""
    with tempfile.TemporaryDirectory() as folder:
        mirror = create_mirror(Path(folder), "bench", graph, mapping)
        reader = GraphReader(graph, mapping, Path(folder), BLOCK, 0.0)
        counts = count_graph(graph, mapping)
        mirror.first_read.at_targets = choose_anchors(mapping, counts)

        def nodes() -> None:
            blocks = reader.label(mirror, CLASSIFIED).read_all(counts.classified)
            reader.read_label(mirror, CLASSIFIED, blocks, counts.classified)

        def relationships() -> None:
            reader.read_relations(mirror, read_all_relations(reader, mirror, counts.nodes))
            mirror.add_relationships([])

        begun = time.process_time()
        node_seconds = wall_seconds(nodes)[0]
        cpu = time.process_time() - begun
        return {
            "nodes": node_seconds,
            "relationships": wall_seconds(relationships)[0],
            "cpu": cpu,
        }


def record_seconds(features) -> float:
    """CPU seconds that writing lists of numbers as records of a raw table takes, the least of 3."""
    rows, tries = features.tolist(), []
    for _ in range(3):
        begun = time.process_time()
        for start in range(0, len(rows), BLOCK):
            encode_columns([rows[start : start + BLOCK]], len(rows[start : start + BLOCK]))
        tries.append(time.process_time() - begun)
    return min(tries)


def floor(graph: Graph) -> dict[str, float]:
    queries = {"nodes": FLOOR_NODES, "relationships": FLOOR_LINKS}
    return {name: wall_seconds(lambda q=q: graph.read(q))[0] for name, q in queries.items()}


def pack(graph: Graph, features) -> None:
    """Store byte arrays beside the lists of floats, as a loader that cares would."""
    rows = [[i, one.astype("<f4").tobytes()] for i, one in enumerate(features)]
    for start in range(0, len(rows), BLOCK):
        graph.run(PACK, rows=rows[start : start + BLOCK])


def least(old: dict[str, float] | None, new: dict[str, float]) -> dict[str, float]:
    return new if old is None else {name: min(old[name], new[name]) for name in new}


def timed(graph: Graph, password: str, rounds: int) -> dict[str, dict[str, float]]:
    """The least seconds of every way, after warm-up reads: the server compiles what it runs."""
    ways: dict[str, dict[str, float]] = {}
    for _ in range(WARM_UP_READS):
        floor(graph)
        for mapping in OURS.values():
            ours(graph, mapping)
    for _ in range(rounds):
        for way in WAYS:
            ways[way] = least(ways.get(way), in_a_process(way, graph, password))
        for way, mapping in OURS.items():
            ways[way] = least(ways.get(way), ours(graph, mapping))
        ways["floor"] = least(ways.get("floor"), floor(graph))
    return ways


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    nodes = 5_000 if given.quick else given.nodes
    with running(LASTING) as (graph, password):
        sample, _ = filled(graph, nodes)
        pack(graph, sample.features)
        ways = timed(graph, password, given.rounds)
    seconds = record_seconds(sample.features[:nodes])
    show({"nodes": nodes, "record_cpu_s": seconds})
    keep("reading", table(ways, nodes, sample.edges.shape[1]), given.quick, record_cpu_s=seconds)


def table(ways: dict[str, dict[str, float]], nodes: int, links: int) -> list[dict[str, Any]]:
    plain, least_possible = ways["plain driver"], ways["floor"]
    rows = [
        {
            "way": way, "nodes": nodes, "relationships": links,
            "node_rows_per_s": nodes / found["nodes"],
            "mb_per_s": nodes * FEATURES * 8 / found["nodes"] / 1e6,
            "relationships_per_s": links / found["relationships"],
            "nodes_x_plain": plain["nodes"] / found["nodes"],
            "relationships_x_plain": plain["relationships"] / found["relationships"],
            "nodes_x_floor": found["nodes"] / least_possible["nodes"],
            "relationships_x_floor": found["relationships"] / least_possible["relationships"],
        }
        | (
            {
                "client_cpu_s_of_nodes": found["cpu"],
                "s_per_million_nodes": (found["nodes"] + found["relationships"]) * 1e6 / nodes,
            }
            if "cpu" in found
            else {}
        )
        for way, found in ways.items()
    ]  # fmt: skip
    for row in rows:
        show(row)
    return rows


if __name__ == "__main__":
    main()
