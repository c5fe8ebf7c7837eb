"""New nodes in a large graph: the incremental pass beside our own full one and PyG's.

    python -m benchmarks.incremental [--quick]

One thread, CPU time, the ways taken in turns on the same graph in the same process (PyG's, which is
slow, once). The tables are those that a run before would have left. The outputs are wanted at the
new nodes and at 2,000 calibration nodes; for DAPS, the default score, at their neighbours too, with
tables that such runs would have left. `full` computes all outputs with our kernels; `pyg` is the
network's own forward on an edge_index. A graph for which PyG would need more memory than there is
gets no PyG figure.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch

from benchmarks.measuring import (
    arriving_ends,
    available_gb,
    cpu_seconds,
    keep,
    kept,
    random_ends,
    show,
)
from ringfence.models.inference import (
    InferenceGraph,
    InferencePlan,
    Outputs,
    Tables,
    empty_tables,
    forward,
    forward_whole,
    neighbourhood,
    plan_of,
)
from ringfence.models.inference.graph import graph_of, in_neighbours, with_late
from ringfence.models.inference.state import TABLE_COLUMNS
from ringfence.models.networks import build

CLASSES, HIDDEN, CALIBRATION, ROUNDS = 10, 64, 2_000, 3
NETWORKS = ["gcn", "sage", "gat", "appnp"]
SIZES = [(200_000, 2_000_000, 128), (1_000_000, 10_000_000, 64)]
QUICK = [(20_000, 200_000, 32)]
CURVE = [10_000, 30_000, 100_000, 300_000]  # the graph of a million stands in the table
PYG_COPIES = {"gcn": 2.2, "sage": 2.2, "gat": 2.8, "appnp": 2.2}  # of [directed edges, width]
SPARE_GB = 2  # left to the rest of the machine


def copied(tables: Tables) -> Tables:
    return replace(tables, **{name: getattr(tables, name).copy() for name in TABLE_COLUMNS})


@dataclass
class Timed:
    """The least CPU seconds of a full pass and of each batch's pass, taken in turns."""

    plan: InferencePlan
    features: np.ndarray
    arrived: dict[int, InferenceGraph]
    calibration: np.ndarray
    tables: dict[str, Tables]
    full_seconds: float = np.inf
    whole: np.ndarray | None = None
    seconds: dict[tuple[str, int], float] = field(default_factory=dict)
    found: dict[int, Outputs] = field(default_factory=dict)

    def round(self) -> None:
        most = self.arrived[max(self.arrived)]
        once, self.whole = cpu_seconds(partial(forward_whole, self.plan, most, self.features))
        self.full_seconds = min(self.full_seconds, once)
        for new, graph in self.arrived.items():
            for score, tables in self.tables.items():
                own, wanted = copied(tables), self.wanted(new)
                once, outputs = cpu_seconds(partial(self.outputs, score, graph, wanted, own))
                least = self.seconds.get((score, new), np.inf)
                self.seconds[score, new] = min(least, once)
                if score == "APS":
                    self.found[new] = outputs

    def outputs(
        self, score: str, graph: InferenceGraph, wanted: np.ndarray, own: Tables
    ) -> Outputs:
        """Outputs at the rows that a score needs: DAPS looks at the neighbours as well."""
        rows = neighbourhood(graph, wanted).rows if score == "DAPS" else wanted
        return forward(self.plan, graph, self.features, rows, own)

    def wanted(self, new: int) -> np.ndarray:
        size = self.arrived[new].size
        return np.concatenate([self.calibration, np.arange(size - new, size)])

    def difference(self, new: int) -> float:
        whole = self.whole
        if new != max(self.arrived):
            whole = forward_whole(self.plan, self.arrived[new], self.features)
        return float(np.abs(whole[self.wanted(new)] - self.found[new].logits).max())


def pyg_seconds(network, name, graph, features):
    width = CLASSES if name == "appnp" else HIDDEN if name != "sage" else features.shape[1]
    needed = PYG_COPIES[name] * graph.entries * width * 4 / 1e9 + SPARE_GB
    if (free := available_gb()) < needed:
        print(f"PyG's {name} would need about {needed:.0f} GB; {free:.0f} are free: left out")
        return None, None
    near = in_neighbours(graph, np.arange(graph.size))
    index = torch.from_numpy(
        np.stack([near.sources.astype(np.int64), np.repeat(np.arange(graph.size), near.counts())])
    )
    x = torch.from_numpy(features[: graph.size])
    with torch.inference_mode():
        return cpu_seconds(lambda: network(x, index).numpy())


def measure(nodes, relationships, width, attachment, names, batches, with_pyg=True):
    rng = np.random.default_rng(1)
    ends = random_ends(rng, nodes, relationships, attachment)
    graph = graph_of(ends, nodes)
    most = max(batches)
    features = rng.standard_normal((nodes + most, width), dtype=np.float32)
    calibration = rng.choice(nodes, min(CALIBRATION, nodes // 4), replace=False)
    arrived = {
        new: with_late(
            graph,
            arriving_ends(rng, nodes, new, relationships // nodes, ends, attachment),
            nodes + new,
            version=1,
        )
        for new in batches
    }
    del ends
    for name in names:
        network = build(name, width, CLASSES, hidden=HIDDEN, seed=1).eval()
        plan = plan_of(network, torch.zeros(width), torch.ones(width))
        tables = {"APS": empty_tables(plan, nodes + most)}
        forward(plan, graph, features, calibration, tables["APS"])  # the run before
        if name != "appnp":  # every pass of which is a full one
            tables["DAPS"] = empty_tables(plan, nodes + most)
            forward(plan, graph, features, neighbourhood(graph, calibration).rows, tables["DAPS"])
        base = {
            "nodes": nodes, "relationships": relationships, "features": width,
            "attachment": attachment, "network": name,
        }  # fmt: skip
        timed = Timed(plan, features, arrived, calibration, tables)
        timed.round()
        pyg, reference = None, None
        if with_pyg:
            pyg, reference = pyg_seconds(network, name, arrived[most], features)
        drift = None if reference is None else float(np.abs(reference - timed.whole).max())
        del reference
        for _ in range(ROUNDS - 1):
            timed.round()
        for new in batches:
            found, seconds, full = timed.found[new], timed.seconds["APS", new], timed.full_seconds
            daps = timed.seconds.get(("DAPS", new))
            row = {
                **base, "new": new, "way": found.way, "seconds": seconds, "full_seconds": full,
                "pyg_seconds": pyg, "full_ratio": full / seconds,
                "pyg_ratio": None if pyg is None else pyg / seconds,
                "daps_seconds": daps, "daps_x": None if daps is None else daps / seconds,
                "affected": found.refreshed / (nodes + new),
                "difference": timed.difference(new), "difference_to_pyg": drift,
            }  # fmt: skip
            show(row)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small graph")
    parser.add_argument("--no-curve", action="store_true")
    parser.add_argument("--only-curve", action="store_true", help="keep the table as it is")
    parser.add_argument("--no-pyg", action="store_true")
    parser.add_argument("--nodes", type=int, help="only the graph of this size")
    parser.add_argument("--only", help="networks, separated by commas; the rows of others stay")
    given = parser.parse_args()
    torch.set_num_threads(1)
    names = given.only.split(",") if given.only else NETWORKS
    batches = [10, 100, 1_000] if given.quick else [10, 100, 1_000, 10_000]
    rows, curve = others(given)
    for size in [] if given.only_curve else QUICK if given.quick else SIZES:
        for attachment in ("uniform", "preferential"):
            if given.nodes in (None, size[0]):
                for row in measure(*size, attachment, names, batches, not given.no_pyg):
                    rows.append(row)
                    keep("incremental", in_order(rows), given.quick, curve=curve)
    if not given.no_curve:
        for nodes in [10_000, 30_000] if given.quick else CURVE:
            ends = (nodes, nodes * 10, 64, "uniform")
            along = [name for name in names if name != "appnp"]  # it grows with the graph
            curve += measure(*ends, along, [1_000], with_pyg=False)
            keep("incremental", in_order(rows), given.quick, curve=in_order(curve))


def others(given: argparse.Namespace) -> tuple[list, list]:
    """Rows that stay as they are, because their networks, sizes or tables aren't asked for."""
    if given.quick or not (given.only or given.only_curve or given.nodes):
        return [], []
    body = kept("incremental")
    asked = given.only.split(",") if given.only else NETWORKS
    rows, curve = body["rows"], body["curve"]
    if not given.only_curve:
        sizes = (given.nodes,) if given.nodes else tuple(size[0] for size in SIZES)
        rows = [r for r in rows if r["network"] not in asked or r["nodes"] not in sizes]
    if not given.no_curve:
        curve = [r for r in curve if r["network"] not in asked]
    return rows, curve


def in_order(rows: list) -> list:
    """By graph, network and batch, whatever was measured last."""
    return sorted(
        rows,
        key=lambda r: (r["nodes"], r["attachment"] != "uniform", NETWORKS.index(r["network"])),
    )


if __name__ == "__main__":
    main()
