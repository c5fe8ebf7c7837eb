"""What the graph shows of a record, read run by run for `verify` and `reconcile`.

    python -m benchmarks.shown_sets [--cases 1x40000 50x800 200x200]

A case is so many runs of so many nodes; all runs are read. `blocks` is the product: 2,000 nodes at
a time by key. `stream` asks for each run at once, without a condition on the key. A block that
expanded its whole run would be seen by `x` growing with the nodes of a run. Both give the same
sets, in turns on the same server; seconds on the clock, since the server does the work.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from benchmarks.measuring import show
from benchmarks.server import SERVER, running
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.compare import ordered, read_shown_sets
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.migrate import create_user_indexes, migrate_graph
from ringfence.connector.neo4j.write.prediction_sets import run_id
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING

PROJECT, BLOCK, CLASSES = "bench", 2_000, 4
FILL = """
MATCH (r:RingfenceRun {id: $run})
MATCH (c:RingfenceClass {project: $project}) WITH r, collect(c) AS classes
UNWIND range($first, $last) AS i
CREATE (n:LABEL {KEY: i})
CREATE (n)-[:EVALUATED {key: $project + '/i:' + i, size: 2, alpha: 0.1, level: 0.1, band: ''}]->(r)
FOREACH (c IN [classes[i % 4], classes[(i + 1) % 4]] |
  CREATE (n)-[:MAY_BE {p: 0.5, in_set: true}]->(c))
"""
STREAM = """
MATCH (n)-[e:EVALUATED]->(:RingfenceRun {id: $run})
RETURN e.key AS evaluated,
       [(n)-[m:MAY_BE]->(c:RingfenceClass {project: $project}) | [c.name, m.p, m.in_set]] AS set
"""


def fill(graph: Graph, mapping: GraphMapping, seq: int, first: int, nodes: int) -> None:
    graph.run("CREATE (:RingfenceRun {id: $run, project: $project})",
              run=run_id(PROJECT, seq), project=PROJECT)  # fmt: skip
    query = FILL.replace("LABEL", mapping.classified.label).replace("KEY", mapping.classified.key)
    for start in range(first, first + nodes, 10_000):
        last = min(start + 10_000, first + nodes) - 1
        graph.run(query, run=run_id(PROJECT, seq), project=PROJECT, first=start, last=last)


def in_one_stream(graph: Graph, seq: int) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for row in graph.stream(STREAM, BLOCK, run=run_id(PROJECT, seq), project=PROJECT):
        key = str(row["evaluated"]).removeprefix(f"{PROJECT}/")
        shown[key] = ordered([tuple(one) for one in row["set"]])
    return shown


def read_all(graph: Graph, mapping: GraphMapping, seqs: range, streamed: bool) -> int:
    found = 0
    for seq in seqs:
        shown = (
            in_one_stream(graph, seq)
            if streamed
            else read_shown_sets(graph, mapping, PROJECT, seq, BLOCK)
        )
        found += sum(len(getattr(one, "classes", one)) for one in shown.values())
    return found


def measure(runs: int, nodes: int, turns: int) -> dict[str, Any]:
    with running(SERVER) as (graph, _):
        mapping = SAMPLE_MAPPING
        migrate_graph(graph)
        create_user_indexes(graph, mapping)
        for i in range(CLASSES):
            graph.run("CREATE (:RingfenceClass {project: $project, name: $name})",
                      project=PROJECT, name=f"class {i}")  # fmt: skip
        for seq in range(runs):
            fill(graph, mapping, seq, seq * nodes, nodes)
        seconds: dict[str, list[float]] = {"stream": [], "blocks": []}
        for _turn in range(turns):
            found = []
            for way in seconds:
                start = time.perf_counter()
                found.append(read_all(graph, mapping, range(runs), way == "stream"))
                seconds[way].append(time.perf_counter() - start)
            assert found == [2 * runs * nodes] * 2  # two classes each, by both
    stream, blocks = min(seconds["stream"]), min(seconds["blocks"])
    return {"runs": runs, "nodes": nodes, "stream": stream, "blocks": blocks, "x": blocks / stream}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=["1x40000", "50x800", "200x200"])
    parser.add_argument("--turns", type=int, default=2)
    given = parser.parse_args()
    for case in given.cases:
        runs, nodes = map(int, case.split("x"))
        show(measure(runs, nodes, given.turns))


if __name__ == "__main__":
    main()
