"""Writing prediction sets: ringfence's blocks beside one query per node.

    python -m benchmarks.writing [--quick | --nodes N]

3.5 classes per set on average, as (n)-[:MAY_BE {p}]->(class) relationships, which is what ringfence
writes, and as properties of the node, found by key or by elementId with the key as guard. Row by
row is one auto-commit query per node over one open session, timed on a part. Times are on the
clock, the best of three rounds in turns.
"""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace

import numpy as np

from benchmarks.measuring import keep, show, wall_seconds
from benchmarks.server import SERVER, running
from ringfence.connector import projection
from ringfence.connector.graph import Graph
from ringfence.connector.lease import Lease
from ringfence.connector.migrate_graph import create_user_indexes, migrate_graph
from ringfence.jobs.sample_graph import SAMPLE_MAPPING

ROUNDS = 3  # the first ones warm the server up
CLASSES = [f"class {i}" for i in range(10)]
ONE = """
MATCH (n:Account {id: $key}), (r:RingfenceRun {id: $run})
MERGE (n)-[:EVALUATED {key: $evaluated}]->(r)
WITH n UNWIND $set AS one
MATCH (c:RingfenceClass {project: 'bench', name: one[0]})
MERGE (n)-[:MAY_BE {p: one[1]}]->(c)
"""
ONE_PROPERTY = "MATCH (n:Account {id: $key}) SET n.names = $names, n.p = $p"
BY_ID = """
UNWIND $rows AS row
MATCH (n:Account) WHERE elementId(n) = row[3] AND n.id = row[0]
SET n.names = row[1], n.p = row[2]
"""
PROPERTIES = "UNWIND $rows AS row MATCH (n:Account {id: row[0]}) SET n.names = row[1], n.p = row[2]"


def drawn(nodes: int) -> list[SimpleNamespace]:
    rng = np.random.default_rng(1)
    rows = []
    for i, size in enumerate(rng.integers(1, 7, nodes).tolist()):
        names = [CLASSES[c] for c in sorted(rng.choice(10, size, replace=False).tolist())]
        rows.append(
            SimpleNamespace(
                project="bench",
                node_key=f"i:{i}",
                size=size,
                p_values=json.dumps(rng.random(10).round(4).tolist()),
                classes=json.dumps(names),
            )
        )
    return rows


def run_of(seq: int) -> SimpleNamespace:
    return SimpleNamespace(
        project="bench", seq=seq, decided_ns=0, rule="NodeEx", alpha=0.1, threshold=0.0,
        n_calibration=1, model="m",
    )  # fmt: skip


def write_blocks(graph: Graph, held: Lease, rows: list, size: int) -> None:
    run = run_of(1)
    projection.write_run(graph, held, run, CLASSES)  # type: ignore[arg-type]
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        missing = projection.write_sets(graph, held, SAMPLE_MAPPING, run, CLASSES, block)  # type: ignore[arg-type]
        if missing:
            raise SystemExit(f"{len(missing)} nodes are missing")


def one_by_one(graph: Graph, held: Lease, rows: list) -> None:
    projection.write_run(graph, held, run_of(2), CLASSES)  # type: ignore[arg-type]
    with graph.driver.session() as session:
        for row in rows:
            p = dict(zip(CLASSES, json.loads(row.p_values), strict=True))
            session.run(
                ONE, key=int(row.node_key[2:]), run="bench/2", evaluated=f"one/{row.node_key}",
                set=[[name, p[name]] for name in json.loads(row.classes)],
            ).consume()  # fmt: skip


def properties(graph: Graph, rows: list, size: int, ids: dict[int, str] | None = None) -> None:
    values = [[int(r.node_key[2:]), json.loads(r.classes), json.loads(r.p_values)] for r in rows]
    if ids is not None:
        values = [[*value, ids[value[0]]] for value in values]
    for start in range(0, len(values), size):
        graph.run(PROPERTIES if ids is None else BY_ID, rows=values[start : start + size])


def one_property(graph: Graph, rows: list) -> None:
    with graph.driver.session() as session:
        for r in rows:
            names, p = json.loads(r.classes), json.loads(r.p_values)
            session.run(ONE_PROPERTY, key=int(r.node_key[2:]), names=names, p=p).consume()


def clear(graph: Graph) -> None:
    graph.run("MATCH ()-[r:MAY_BE|EVALUATED]->() DELETE r")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=50_000)
    given = parser.parse_args()
    nodes = 2_000 if given.quick else given.nodes
    rows, few = drawn(nodes), min(500, nodes // 4)
    held = Lease("bench", "benchmark", 1, 60.0)
    result: dict[str, float] = {}

    def note(name: str, seconds: float, count: int) -> None:
        result[name] = max(result.get(name, 0.0), count / seconds)

    with running(SERVER) as (graph, _):
        migrate_graph(graph)
        create_user_indexes(graph, SAMPLE_MAPPING)
        graph.run("UNWIND range(0, $n - 1) AS i CREATE (:Account {id: i})", n=nodes)
        for _ in range(ROUNDS):
            note(
                "relationships, row by row",
                wall_seconds(lambda: one_by_one(graph, held, rows[:few]))[0],
                few,
            )
            clear(graph)
            for size in (1_000, 10_000):
                seconds, _ = wall_seconds(lambda n=size: write_blocks(graph, held, rows, n))
                note(f"relationships, blocks of {size:,}", seconds, nodes)
                clear(graph)
            note(
                "properties, row by row",
                wall_seconds(lambda: one_property(graph, rows[:few]))[0],
                few,
            )
            note(
                "properties, blocks of 10,000",
                wall_seconds(lambda: properties(graph, rows, 10_000))[0],
                nodes,
            )
            found = graph.read("MATCH (n:Account) RETURN n.id AS key, elementId(n) AS id")
            ids = {row["key"]: row["id"] for row in found}
            note(
                "properties, blocks of 10,000 by elementId",
                wall_seconds(lambda ids=ids: properties(graph, rows, 10_000, ids))[0],
                nodes,
            )
    table = [
        {
            "way": name, "nodes": nodes, "sets_per_s": rate,
            "x_row_by_row": rate / result[f"{name.split(',')[0]}, row by row"],
        }
        for name, rate in result.items()
    ]  # fmt: skip
    for row in table:
        show(row)
    keep("writing", table, given.quick)


if __name__ == "__main__":
    main()
