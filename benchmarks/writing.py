"""Writing prediction sets: ringfence's blocks beside one query per node.

    python -m benchmarks.writing [--quick | --nodes N]

3.5 classes per set on average, as (n)-[:MAY_BE {p}]->(class) relationships, which is what ringfence
writes, and as properties of the node (names and p-values of the set's classes), which it does not:
a comparison. Blocks of properties find their nodes by key, or by elementId with the key as guard,
and send each class's name once.

Row by row is one auto-commit query per node over one open session, timed on a part of the nodes.
Both ways leave the same in the graph and begin where nothing stands. Relationships are timed from
the rows as SQL stores them, JSON and all, as a run finds them; for properties the values are made
before the clock starts. Each round does everything once, in turns, on one server; the first one
warms it up and isn't counted. A commit waits for the disk, whose mood changes, so ways are compared
within a round: the medians of the rates and of the rounds' ratios are shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator
from types import SimpleNamespace

import numpy as np

from benchmarks.measuring import keep, show, wall_seconds
from benchmarks.server import SERVER, running
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.migrate import create_user_indexes, migrate_graph
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.write import prediction_sets
from ringfence.connector.store.lease import Lease
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING

ROUNDS = 6
PART = 2_000  # nodes written row by row in each round
BLOCK = 10_000  # of properties
CLASSES = [f"class {i}" for i in range(10)]
ONE = """
MATCH (n:Account {id: $key}), (r:RingfenceRun {id: $run})
MERGE (n)-[:EVALUATED {key: $evaluated}]->(r)
WITH n UNWIND $set AS one
MATCH (c:RingfenceClass {project: 'bench', name: one[0]})
MERGE (n)-[:MAY_BE {p: one[1]}]->(c)
"""
ONE_PROPERTY = "MATCH (n:Account {id: $key}) SET n.names = $names, n.p = $p"
PROPERTIES = """
UNWIND $rows AS row
MATCH (n:Account {id: row[0]})
SET n.names = [place IN row[1] | $classes[place]], n.p = row[2]
"""
BY_ID = """
UNWIND $rows AS row
MATCH (n:Account) WHERE elementId(n) = row[3] AND n.id = row[0]
SET n.names = [place IN row[1] | $classes[place]], n.p = row[2]
"""


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
                p_values=tuple(rng.random(10).round(4).tolist()),
                classes=tuple(names),
            )
        )
    return rows


def run_of(seq: int) -> SimpleNamespace:
    return SimpleNamespace(
        project="bench", seq=seq, decided_ns=0, rule="NodeEx", alpha=0.1, threshold=0.0,
        n_calibration=1, model="m",
    )  # fmt: skip


def prepared(rows: list, size: int) -> Generator[prediction_sets.PreparedSets, None, None]:
    for start in range(0, len(rows), size):
        yield prediction_sets.prepare_sets(rows[start : start + size], CLASSES)


def write_blocks(graph: Graph, held: Lease, rows: list, size: int) -> None:
    run = run_of(1)
    prediction_sets.write_run(graph, held, run, CLASSES)  # type: ignore[arg-type]
    for sets in prefetch(prepared(rows, size)):
        missing = prediction_sets.write_sets(graph, held, SAMPLE_MAPPING, run, sets)  # type: ignore[arg-type]
        if missing:
            raise SystemExit(f"{len(missing)} nodes are missing")


def one_by_one(graph: Graph, held: Lease, rows: list) -> None:
    prediction_sets.write_run(graph, held, run_of(2), CLASSES)  # type: ignore[arg-type]
    with graph.driver.session() as session:
        for row in rows:
            p = dict(zip(CLASSES, row.p_values, strict=True))
            session.run(
                ONE, key=int(row.node_key[2:]), run="bench/2", evaluated=f"one/{row.node_key}",
                set=[[name, p[name]] for name in row.classes],
            ).consume()  # fmt: skip


def properties(graph: Graph, query: str, values: list) -> None:
    for start in range(0, len(values), BLOCK):
        graph.run(query, rows=values[start : start + BLOCK], classes=CLASSES)


def one_property(graph: Graph, values: list) -> None:
    with graph.driver.session() as session:
        for key, names, p in values:
            session.run(ONE_PROPERTY, key=key, names=names, p=p).consume()


def property_ways(graph: Graph, rows: list, few: int) -> dict[str, tuple[Callable[[], None], int]]:
    """The three ways of writing properties, their values made already."""
    found = graph.read("MATCH (n:Account) RETURN n.id AS key, elementId(n) AS id")
    ids = {row["key"]: row["id"] for row in found}
    sets = prediction_sets.prepare_sets(rows, CLASSES).rows
    places = [[key, own, p] for key, _, _, own, p in sets]
    named = [[key, [CLASSES[at] for at in own], p] for key, own, p in places[:few]]
    by_id = [[*one, ids[one[0]]] for one in places]
    block = f"properties, blocks of {BLOCK:,}"
    return {
        "properties, row by row": (lambda: one_property(graph, named), few),
        f"{block} by key": (lambda: properties(graph, PROPERTIES, places), len(rows)),
        f"{block} by elementId": (lambda: properties(graph, BY_ID, by_id), len(rows)),
    }


def relationship_ways(
    graph: Graph, held: Lease, rows: list, few: int
) -> dict[str, tuple[Callable[[], None], int]]:
    """One query per node, and ringfence's blocks of several sizes."""
    return {
        "relationships, row by row": (lambda: one_by_one(graph, held, rows[:few]), few),
        **{
            f"relationships, blocks of {size:,}": (
                lambda size=size: write_blocks(graph, held, rows, size),  # type: ignore[misc]
                len(rows),
            )
            for size in (1_000, 2_000, 10_000)
        },
    }


def clear(graph: Graph) -> None:
    graph.run("MATCH ()-[r:MAY_BE|EVALUATED]->() DELETE r")
    graph.run("MATCH (n:Account) WHERE n.names IS NOT NULL REMOVE n.names, n.p")


def check(graph: Graph, way: str, count: int) -> None:
    """Refuse a way that has not written what it was timed for."""
    query = "MATCH (n:Account) WHERE n.names IS NOT NULL RETURN count(n) AS n"
    if way.startswith("relationships"):
        query = "MATCH ()-[e:EVALUATED]->() RETURN count(e) AS n"
    if graph.read(query)[0]["n"] != count:
        raise SystemExit(f"{way}: not all sets are in the graph")


def ratio(rates: list[float], others: list[float]) -> float:
    """The median of the rounds' ratios, the first round left out."""
    return float(np.median([one / two for one, two in zip(rates, others, strict=True)][1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--nodes", type=int, default=50_000)
    given = parser.parse_args()
    nodes = 2_000 if given.quick else given.nodes
    rows, few = drawn(nodes), min(PART, nodes // 4)
    held = Lease("bench", "benchmark", 1, 60.0)
    rates: dict[str, list[float]] = {}
    with running(SERVER) as (graph, _):
        migrate_graph(graph)
        create_user_indexes(graph, SAMPLE_MAPPING)
        graph.run("UNWIND range(0, $n - 1) AS i CREATE (:Account {id: i})", n=nodes)
        ways = relationship_ways(graph, held, rows, few) | property_ways(graph, rows, few)
        for _ in range(ROUNDS):
            for way, (write, count) in ways.items():
                seconds, _ = wall_seconds(write)
                check(graph, way, count)
                rates.setdefault(way, []).append(count / seconds)
                clear(graph)
    table = [
        {
            "way": way, "nodes": nodes, "sets_per_s": float(np.median(found[1:])),
            "x_row_by_row": ratio(found, rates[f"{way.split(',')[0]}, row by row"]),
        }
        for way, found in rates.items()
    ]  # fmt: skip
    for row in table:
        show(row)
    keep("writing", table, given.quick)


if __name__ == "__main__":
    main()
