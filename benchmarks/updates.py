"""A stream of small changes: single relationships come and go, in batches of 1 to 10,000.

    python -m benchmarks.updates [--quick]

Graphs of the size of ogbn-arxiv and ogbn-products, made at random with hubs; no dataset is read.
Each batch is half additions and half removals; it goes through the mirror's lists of relationships,
then outputs are computed at 2,000 calibration nodes and at the ends of what changed, with APS
(those nodes alone) and with DAPS (their neighbours too). One thread; CPU milliseconds per batch, so
that other programs' work isn't counted. A size of batch is repeated 4 to 60 times, fewer where a
minute is over (three times at least): `rounds` says how often. Equality is with a full pass after
the last batch.

What others report, on other hardware and for the outputs of all nodes that a change reaches:
RIPPLE++ (arXiv 2601.12347) up to 56,000 updates/s on ogbn-arxiv and 7,600 on ogbn-products, on one
machine; InkStream (arXiv 2309.11071) 2.5 to 427 times faster than computing all again, on a cluster
of CPUs.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.incremental import CALIBRATION, HIDDEN
from benchmarks.measuring import (
    available_gb,
    cpu_seconds,
    keep,
    kept,
    peak_mb,
    random_ends,
    show,
)
from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.models.inference import (
    InferenceGraph,
    empty_tables,
    forward,
    forward_whole,
    neighbourhood,
    plan_of,
)
from ringfence.models.inference.graph import RemovedEntries
from ringfence.models.networks import build

#: Name, nodes, relationships, features, classes, memory that it takes in GB.
GRAPHS = [
    ("ogbn-arxiv's size", 169_343, 1_166_243, 128, 40, 2),
    ("ogbn-products' size", 2_449_029, 61_859_140, 100, 47, 14),
]
QUICK = [("small", 20_000, 140_000, 32, 10, 1)]
NETWORKS = ["gcn", "sage", "gat"]
BATCHES = [1, 10, 100, 1_000, 10_000]
ROUNDS = {1: 60, 10: 40, 100: 20, 1_000: 10, 10_000: 4}
MIN_ROUNDS, MAX_SECONDS = 3, 60.0  # of one score and one size of batch


def filled(folder: Path, ends, nodes: int) -> Adjacency:
    adjacency = Adjacency.empty(folder)
    adjacency.grow(nodes, 0)
    for start in range(0, ends.shape[1], 1 << 21):
        part = ends[:, start : start + (1 << 21)]
        adjacency.add(part[0], part[1], 0, 0)
    adjacency.settle(0)
    adjacency.merge(0)
    return adjacency


def graph_now(adjacency: Adjacency, version: int) -> InferenceGraph:
    return InferenceGraph(
        adjacency.offsets.array, adjacency.others.array, adjacency.codes.array,
        *adjacency.late_part(), len(adjacency.changed), np.array([True]), adjacency.changed,
        version, RemovedEntries(*adjacency.removed_part()),
    )  # fmt: skip


class Stream:
    """Relationships that come and go, and what stands to be removed."""

    def __init__(self, rng, ends, nodes):
        self.rng, self.ends, self.nodes = rng, ends, nodes
        self.version = 0
        self.left = rng.permutation(ends.shape[1])

    def batch(self, adjacency: Adjacency, size: int):
        """Apply half of a batch as additions and half as removals; return the ends of all."""
        self.version += 1
        coming = size - size // 2 if size > 1 else self.version % 2
        new = self.rng.integers(0, self.nodes, (2, coming))
        adjacency.add(new[0], new[1], 0, self.version)
        adjacency.settle(self.version)
        gone, self.left = self.left[: size - coming], self.left[size - coming :]
        old = self.ends[:, gone]
        adjacency.remove(old[0], old[1], np.zeros(len(gone), np.int64), self.version)
        return np.unique(np.concatenate([new.ravel(), old.ravel()]))


def compute(plan, graph, features, wanted, score, tables):
    """Rows that a score needs, and the outputs there."""
    rows = neighbourhood(graph, wanted).rows if score == "DAPS" else wanted
    return rows, forward(plan, graph, features, rows, tables)


def warm_up(plan, adjacency, stream, features, calibration, kept_tables):
    """Let kernels compile, untimed."""
    for _ in range(2):
        touched = stream.batch(adjacency, 4)
        graph = graph_now(adjacency, stream.version)
        wanted = np.concatenate([calibration, touched])
        for score, tables in kept_tables.items():
            compute(plan, graph, features, wanted, score, tables)


def is_over(spent: list[float]) -> bool:
    """Whether a score has had its time with one size of batch."""
    return len(spent) >= MIN_ROUNDS and sum(spent) > MAX_SECONDS


def tell(stage: str) -> None:
    """Say how far a large graph came, and at what cost."""
    print(
        f"{stage}: {time.process_time():.0f} CPU s so far, at most {peak_mb():,.0f} MB", flush=True
    )


def measure(graph_name, nodes, relationships, width, classes, names, batches):
    rng = np.random.default_rng(1)
    ends = random_ends(rng, nodes, relationships, "preferential")
    features = rng.standard_normal((nodes, width), dtype=np.float32)
    calibration = rng.choice(nodes, CALIBRATION, replace=False)
    tell(f"{nodes:,} nodes and {relationships:,} relationships drawn")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            adjacency = filled(Path(folder), ends, nodes)
            tell("they stand in a mirror")
            network = build(name, width, classes, hidden=HIDDEN, seed=1).eval()
            plan = plan_of(network, torch.zeros(width), torch.ones(width))
            graph = graph_now(adjacency, 0)
            kept_tables = {"APS": empty_tables(plan, nodes)}
            forward(plan, graph, features, calibration, kept_tables["APS"])
            full, _ = cpu_seconds(lambda p=plan, g=graph: forward_whole(p, g, features))
            kept_tables["DAPS"] = empty_tables(plan, nodes)
            compute(plan, graph, features, calibration, "DAPS", kept_tables["DAPS"])
            tell(f"three whole passes of {name}")
            stream = Stream(rng, ends, nodes)
            warm_up(plan, adjacency, stream, features, calibration, kept_tables)
            tell("kernels are compiled")
            for size in batches:
                times = {"APS": [], "DAPS": []}
                for _ in range(ROUNDS[size]):
                    start = time.process_time()
                    touched = stream.batch(adjacency, size)
                    graph = graph_now(adjacency, stream.version)
                    applied = time.process_time() - start
                    wanted = np.concatenate([calibration, touched])
                    found = {}
                    for score, tables in kept_tables.items():
                        if not is_over(times[score]):
                            once, found[score] = cpu_seconds(
                                partial(compute, plan, graph, features, wanted, score, tables)
                            )
                            times[score].append(applied + once)
                whole = forward_whole(plan, graph, features)
                for score, tables in kept_tables.items():
                    if score not in found:  # its time was over before the last batch
                        found[score] = compute(plan, graph, features, wanted, score, tables)
                    rows, outputs = found[score]
                    spent = np.array(times[score]) * 1e3
                    row = {
                        "graph": graph_name, "nodes": nodes, "relationships": relationships,
                        "network": name, "score": score, "batch": size, "rounds": len(spent),
                        "updates_per_s": size * 1e3 / float(np.median(spent)),
                        "p50_ms": float(np.median(spent)),
                        "p95_ms": float(np.quantile(spent, 0.95)),
                        "p99_ms": float(np.quantile(spent, 0.99)),
                        "full_ms": full * 1e3, "full_ratio": full * 1e3 / float(np.median(spent)),
                        "way": outputs.way, "load": round(os.getloadavg()[0], 1),
                        "difference": float(np.abs(outputs.logits - whole[rows]).max()),
                    }  # fmt: skip
                    show(row)
                    yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small graph")
    parser.add_argument("--only", help="networks, separated by commas")
    parser.add_argument("--nodes", type=int, help="only the graph with so many nodes")
    given = parser.parse_args()
    torch.set_num_threads(1)
    names, left = given.only.split(",") if given.only else NETWORKS, []
    rows = others(given, names)
    for *graph, memory in QUICK if given.quick else GRAPHS:
        if given.nodes not in (None, graph[1]):
            continue
        if available_gb() < memory:
            left.append(f"{graph[0]} needs {memory} GB, {available_gb():.0f} were free: left out")
            print(left[-1])
            continue
        for row in measure(*graph, names, BATCHES[:-1] if given.quick else BATCHES):
            rows.append(row)
            keep("updates", in_order(rows), given.quick, note="; ".join(left))
    keep("updates", in_order(rows), given.quick, note="; ".join(left))


def others(given: argparse.Namespace, names: list[str]) -> list:
    """Rows that stay as they are, because their networks or graphs aren't asked for."""
    if given.quick or not (given.only or given.nodes):
        return []
    return [
        row
        for row in kept("updates")["rows"]
        if row["network"] not in names or given.nodes not in (None, row["nodes"])
    ]


def in_order(rows: list) -> list:
    """By graph and network, whatever was measured last."""
    return sorted(rows, key=lambda row: (row["nodes"], NETWORKS.index(row["network"])))


if __name__ == "__main__":
    main()
