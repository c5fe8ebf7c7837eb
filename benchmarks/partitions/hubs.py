"""How many rows partitions would not have to exchange if sums of hubs were kept on every one.

    python -m benchmarks.partitions.hubs

GCN, 100,000 nodes, ten relationships each, one end by a power law; 1,000 nodes arrive and 2,000
others are wanted with them. A hub has 100 neighbours or more. Rows that the first layer reads from
other partitions are counted with and without those that only hubs read: a kept sum spares these.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import random_ends
from ringfence.models.inference import graph_of, in_neighbours
from ringfence.models.inference.graph import InferenceGraph, incoming_counts
from ringfence.models.inference.partition import newest_inputs, rows_around
from ringfence.models.inference.partition.ownership import divide, extend
from ringfence.models.inference.plan import plan_named

NODES, NEW, DEGREE, WANTED, PARTS, HUB = 100_000, 1_000, 10, 2_000, 4, 100


def gcn_plan():
    shapes = {"conv1.lin.weight": (8, 4), "conv1.bias": (8,), "conv2.lin.weight": (3, 8),
              "conv2.bias": (3,)}  # fmt: skip
    arrays = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    return plan_named("gcn", arrays, np.zeros(4), np.ones(4), {})


def rows_read(graph: InferenceGraph, owners, rows) -> int:
    """Rows of other partitions that a layer at some rows reads, of all partitions together."""
    found = 0
    for part in range(PARTS):
        near = np.unique(in_neighbours(graph, rows[owners[rows] == part]).sources)
        found += int((owners[near] != part).sum())
    return found


def main() -> None:
    rng, plan = np.random.default_rng(0), gcn_plan()
    for attachment in ("uniform", "power law"):
        ends = random_ends(rng, NODES, NODES * DEGREE, attachment)
        owners = divide(graph_of(ends, NODES), PARTS)
        source = np.repeat(np.arange(NODES, NODES + NEW), DEGREE)
        target = ends[1][rng.integers(0, ends.shape[1], len(source))]
        changed = np.zeros(NODES + NEW, np.int64)
        changed[np.concatenate([source, target])] = 1
        grown = np.hstack([ends, np.stack([source, target])])
        graph = graph_of(grown, NODES + NEW, changed=changed, version=1)
        owners = extend(graph, owners, PARTS)
        wanted = np.append(rng.choice(NODES, WANTED, replace=False), np.arange(NODES, NODES + NEW))
        needed = np.flatnonzero(rows_around(plan, graph, wanted))
        stale = needed[newest_inputs(plan, graph, needed) > 0]
        hubs = incoming_counts(graph, stale) >= HUB
        whole, without = (rows_read(graph, owners, one) for one in (stale, stale[~hubs]))
        print(f"{attachment}: {len(stale):,} rows are made again, {int(hubs.sum()):,} hubs; "
              f"{whole:,} rows are read from others, {without:,} without the hubs' "
              f"({1 - without / whole:.0%} less)")  # fmt: skip


if __name__ == "__main__":
    main()
