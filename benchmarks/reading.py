"""Reading a whole graph: ringfence beside loops over rows, by two drivers and py2neo.

    python -m benchmarks.reading [--quick | --nodes N]

Nodes with 64-float lists and five relationships each, in an embedded Neo4j. Every way reads the
same rows, one after the other, the rounds interleaved; the least time on the clock counts. `floor`
lets the server touch the same values and return one row. The plain driver and py2neo run in
processes of their own, without the Rust extension for the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import ROOT, keep, show, wall_seconds
from benchmarks.server import FEATURES, filled, running
from ringfence.connector.changes import read_nodes, read_relationships
from ringfence.connector.graph import Graph
from ringfence.connector.mirror import create
from ringfence.jobs.sample_graph import SAMPLE_MAPPING

NODES = "MATCH (n:Account) RETURN n.id, n.features, n.kind, n.created_at"
LINKS = "MATCH (a:Account)-[:PAID]->(b:Account) RETURN a.id, b.id"
FLOOR_NODES = "MATCH (n:Account) RETURN sum(size(n.features)), count(n.kind), max(n.created_at)"
FLOOR_LINKS = "MATCH (a:Account)-[:PAID]->(b:Account) RETURN sum(a.id), sum(b.id)"
PACK = "UNWIND $rows AS row MATCH (n:Account {id: row[0]}) SET n.features = row[1]"
BLOCK = 10_000


def child(way: str, uri: str) -> dict[str, float]:
    """Seconds of a loop over rows, in this process."""
    password = os.environ["BENCH_PASSWORD"]
    if way == "plain driver":
        sys.modules["neo4j._rust"] = None  # type: ignore[assignment]
    if way == "py2neo":
        from py2neo import Graph as Py2neo

        opened = Py2neo(uri, auth=("neo4j", password))
        loops = {name: lambda q=q: sum(1 for _ in opened.run(q)) for name, q in _QUERIES.items()}
        return {name: wall_seconds(loop)[0] for name, loop in loops.items()}
    from neo4j import GraphDatabase

    found = {}
    with GraphDatabase.driver(uri, auth=("neo4j", password)) as driver, driver.session() as session:
        for name, query in _QUERIES.items():
            found[name] = wall_seconds(lambda q=query: sum(1 for _ in session.run(q)))[0]
    return found


_QUERIES = {"nodes": NODES, "relationships": LINKS}


def in_a_process(way: str, graph: Graph, password: str) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.reading", "--child", way]
    done = subprocess.run(
        [*command, "--uri", graph.uri], cwd=ROOT, check=True, capture_output=True, text=True,
        env={**os.environ, "BENCH_PASSWORD": password},
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def ours(graph: Graph) -> dict[str, float]:
    """Both reads, the rows ending in a mirror's files."""
    with tempfile.TemporaryDirectory() as folder:
        mirror = create(Path(folder), "bench", FEATURES)

        def nodes() -> None:
            for block in read_nodes(graph, SAMPLE_MAPPING, FEATURES, None, BLOCK):
                mirror.add_nodes([block])

        def relationships() -> None:
            for block in read_relationships(graph, SAMPLE_MAPPING, None, [], BLOCK):
                mirror.add_block(block)
            mirror.add_relationships([])

        return {"nodes": wall_seconds(nodes)[0], "relationships": wall_seconds(relationships)[0]}


def floor(graph: Graph) -> dict[str, float]:
    queries = {"nodes": FLOOR_NODES, "relationships": FLOOR_LINKS}
    return {name: wall_seconds(lambda q=q: graph.read(q))[0] for name, q in queries.items()}


def pack(graph: Graph, features) -> None:
    """Turn lists of floats into byte arrays, as a loader that cares would store them."""
    rows = [[i, one.astype("<f4").tobytes()] for i, one in enumerate(features)]
    for start in range(0, len(rows), BLOCK):
        graph.run(PACK, rows=rows[start : start + BLOCK])


def least(old: dict[str, float] | None, new: dict[str, float]) -> dict[str, float]:
    return new if old is None else {name: min(old[name], new[name]) for name in new}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--uri", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child, given.uri)))
        return
    nodes = 5_000 if given.quick else given.nodes
    ways: dict[str, dict[str, float]] = {}
    with running() as (graph, password):
        sample, _ = filled(graph, nodes)
        for _ in range(given.rounds):
            for way in ("plain driver", "driver with Rust", "py2neo"):
                ways[way] = least(ways.get(way), in_a_process(way, graph, password))
            ways["ringfence, lists"] = least(ways.get("ringfence, lists"), ours(graph))
            ways["floor"] = least(ways.get("floor"), floor(graph))
        pack(graph, sample.features)
        for _ in range(given.rounds):
            ways["ringfence, bytes"] = least(ways.get("ringfence, bytes"), ours(graph))
    plain, links = ways["plain driver"], sample.edges.shape[1]
    rows = [
        {
            "way": way, "nodes": nodes, "relationships": links,
            "node_rows_per_s": nodes / found["nodes"],
            "mb_per_s": nodes * FEATURES * 8 / found["nodes"] / 1e6,
            "relationships_per_s": links / found["relationships"],
            "nodes_x_plain": plain["nodes"] / found["nodes"],
            "relationships_x_plain": plain["relationships"] / found["relationships"],
        }
        for way, found in ways.items()
    ]  # fmt: skip
    for row in rows:
        show(row)
    keep("reading", rows, given.quick)


if __name__ == "__main__":
    main()
