"""Deleted nodes, removed relationships, changed features: the incremental pass beside a full one.

    python -m benchmarks.deletions [--quick]

One thread, CPU time, the ways taken in turns on the same graph in the same process. 1,000 nodes or
relationships are removed, or 1,000 nodes have other features; outputs are wanted at 2,000
calibration nodes and 1,000 others. `difference` is to a full pass over a graph that was built anew
without what was removed. `mirror` is one run of the local mirror: load, the change, save.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.changed_graphs import altered, remaining, without
from benchmarks.incremental import CALIBRATION, CLASSES, HIDDEN, NETWORKS, ROUNDS, copied
from benchmarks.measuring import cpu_seconds, keep, kept, random_ends, show
from ringfence.models.inference import empty_tables, forward, forward_whole, graph_of, plan_of
from ringfence.models.networks import build

SIZES = [(200_000, 2_000_000, 128), (1_000_000, 10_000_000, 64)]
QUICK = [(20_000, 200_000, 32)]
MANY, DUE = 1_000, 1_000
ATTACHMENTS = ("uniform", "preferential")
WHAT = ("relationships removed", "nodes deleted", "features changed")


def changes(rng, graph, ends, features, calibration):
    """By kind: the graph and features after the change, and the same graph built anew."""
    nodes = graph.size
    lost = rng.choice(ends.shape[1], MANY, replace=False)
    rest = np.setdiff1d(np.arange(nodes), calibration)
    dead = rng.choice(rest, MANY, replace=False)
    dying = np.flatnonzero(np.isin(ends[0], dead) | np.isin(ends[1], dead))
    other = features.copy()
    other[dead] += 1
    yield WHAT[0], without(graph, ends, lost, 1), features, ends, lost, rest[:DUE]
    alive = np.setdiff1d(rest, dead)
    yield WHAT[1], without(graph, ends, dying, 1), features, ends, dying, alive[:DUE]
    yield WHAT[2], altered(graph, dead, 1), other, ends, lost[:0], rest[:DUE]


def measure(nodes, relationships, width, attachment, names):
    rng = np.random.default_rng(1)
    ends = random_ends(rng, nodes, relationships, attachment)
    graph = graph_of(ends, nodes)
    features = rng.standard_normal((nodes, width), dtype=np.float32)
    calibration = rng.choice(nodes, min(CALIBRATION, nodes // 4), replace=False)
    cases = list(changes(rng, graph, ends, features, calibration))
    for name in names:
        network = build(name, width, CLASSES, hidden=HIDDEN, seed=1).eval()
        plan = plan_of(network, torch.zeros(width), torch.ones(width))
        tables = empty_tables(plan, nodes)
        forward(plan, graph, features, calibration, tables)  # the run before
        for what, after, given, old, gone, due in cases:
            wanted = np.concatenate([calibration, due])
            full = least = np.inf
            for _ in range(ROUNDS):
                once, whole = cpu_seconds(partial(forward_whole, plan, after, given))
                full = min(full, once)
                own = copied(tables)
                once, found = cpu_seconds(partial(forward, plan, after, given, wanted, own))
                least = min(least, once)
            anew = graph_of(remaining(old, gone, nodes), nodes) if len(gone) else graph
            truth = forward_whole(plan, anew, given)[wanted]
            row = {
                "nodes": nodes, "relationships": relationships, "attachment": attachment,
                "network": name, "what": what, "count": MANY, "way": found.way,
                "seconds": least, "full_seconds": full, "full_ratio": full / least,
                "affected": found.refreshed / nodes,
                "difference": float(np.abs(found.logits - truth).max()),
                "difference_to_full": float(np.abs(found.logits - whole[wanted]).max()),
            }  # fmt: skip
            show(row)
            yield row


def measure_mirror(nodes, degree):
    """A run of the mirror alone: load, 1,000 nodes deleted and 1,000 changed, save."""
    from benchmarks.scale import fill, link
    from ringfence.connector.mirror import NodeBlock, create, load, save

    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def first():
            mirror = create(folder, "g", 64)
            fill(mirror, rng, nodes)
            link(mirror, rng, np.repeat(np.arange(nodes), degree))
            save(mirror, folder)

        def change():
            mirror = load(folder, "g")
            rows = rng.choice(np.flatnonzero(mirror.present), 2 * MANY, replace=False)
            mirror.remove_nodes(rows[:MANY])
            keys = mirror.keys.take(rows[MANY:].tolist())
            features = rng.standard_normal((MANY, mirror.width), dtype=np.float32)
            times = mirror.created_ns[rows[MANY:]]
            mirror.replace_nodes([NodeBlock(keys, features, [None] * MANY, times, [])])
            save(mirror, folder)

        filled, _ = cpu_seconds(first)
        changed, _ = cpu_seconds(change, rounds=ROUNDS)
    row = {
        "nodes": nodes, "relationships": nodes * degree, "network": "mirror",
        "what": "1,000 nodes deleted, 1,000 changed", "count": 2 * MANY, "way": "in place",
        "seconds": changed, "full_seconds": filled, "full_ratio": filled / changed,
    }  # fmt: skip
    show(row)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small graph")
    parser.add_argument("--nodes", type=int, help="only the graph of this size")
    parser.add_argument("--only", help="networks, separated by commas")
    parser.add_argument("--attachment", choices=ATTACHMENTS, help="only graphs of this kind")
    given = parser.parse_args()
    torch.set_num_threads(1)
    names = given.only.split(",") if given.only else NETWORKS
    kinds = [given.attachment] if given.attachment else ATTACHMENTS
    rows = others(given, names, kinds)
    for size in QUICK if given.quick else SIZES:
        if given.nodes not in (None, size[0]):
            continue
        for attachment in kinds:
            for row in measure(*size, attachment, names):
                rows.append(row)
                keep("deletions", in_order(rows), given.quick)
        if not given.only:
            rows.append(measure_mirror(size[0], 10))
            keep("deletions", in_order(rows), given.quick)


def others(given: argparse.Namespace, names: list[str], kinds: Sequence[str]) -> list:
    """Rows that stay as they are, because nobody asks for their graphs or networks."""
    if given.quick or not (given.nodes or given.only or given.attachment):
        return []
    sizes = [given.nodes] if given.nodes else [size[0] for size in SIZES]
    measured = {(n, k, name) for n in sizes for k in kinds for name in names}
    if not given.only:
        measured |= {(n, None, "mirror") for n in sizes}
    return [
        r for r in kept("deletions")["rows"]
        if (r["nodes"], r.get("attachment"), r["network"]) not in measured
    ]  # fmt: skip


def in_order(rows: list) -> list:
    """By graph and network, whatever was measured last."""
    order = {name: place for place, name in enumerate([*NETWORKS, "mirror"])}
    kinds = {"uniform": 0, "preferential": 1, None: 2}
    return sorted(rows, key=lambda r: (r["nodes"], kinds[r.get("attachment")], order[r["network"]]))


if __name__ == "__main__":
    main()
