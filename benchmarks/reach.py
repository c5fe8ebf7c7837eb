"""How far a change reaches in APPNP, and what any exact incremental pass could save.

    python -m benchmarks.reach [--quick]

After new nodes came, a step of the walk must compute the rows whose value differs from before (the
`forward` share), and of those only such as the wanted outputs still depend on (the `backward`
share). The sum over steps of the smaller share is the least work of an exact pass that keeps every
step of the last one; steps divided by it is the largest ratio that it could reach. `above 1e-6` is
the share of all outputs that moved by more than that: a bounded pass may not leave those alone.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse

import numpy as np

from benchmarks.measuring import arriving_ends, keep, random_ends, show
from ringfence.models.inference.graph import graph_of, in_neighbours
from ringfence.models.inference.kernels.appnp import walk
from ringfence.models.inference.messages import degree_scale

SIZES = [(200_000, 2_000_000), (1_000_000, 10_000_000)]
QUICK = [(20_000, 200_000)]
STEPS, TELEPORT, CLASSES, CALIBRATION = 10, 0.1, 10, 2_000


def walked(near, origin):
    """z after every step, [steps + 1] arrays of [n, classes]."""
    scale, found = degree_scale(near.counts()), [origin]
    for _ in range(STEPS):
        after = np.empty_like(origin)
        lists = (near.offsets, near.sources, scale)
        walk(0, len(near.rows), *lists, TELEPORT, origin, found[-1], after)
        found.append(after)
    return found


def backward_shares(graph, wanted):
    """Share of rows that the wanted outputs depend on, per step from the first to the last."""
    marks = np.zeros(graph.size, np.bool_)
    marks[wanted] = True
    shares = []
    for _ in range(STEPS):
        shares.append(float(marks.mean()))
        if not marks.all():
            marks[in_neighbours(graph, np.flatnonzero(marks)).sources] = True
    return shares[::-1]


def measure(nodes, relationships, attachment, new):
    rng = np.random.default_rng(1)
    ends = random_ends(rng, nodes, relationships, attachment)
    more = arriving_ends(rng, nodes, new, relationships // nodes, ends, attachment)
    old, size = graph_of(ends, nodes), nodes + new
    graph = graph_of(np.hstack([ends, more]), size)
    origin = rng.standard_normal((size, CLASSES), dtype=np.float32)
    before = walked(in_neighbours(old, np.arange(nodes)), origin[:nodes])
    after = walked(in_neighbours(graph, np.arange(size)), origin)
    forward = [
        float((after[k][:nodes] != before[k]).any(axis=1).mean()) for k in range(1, STEPS + 1)
    ]
    wanted = np.concatenate([rng.choice(nodes, CALIBRATION, False), np.arange(nodes, size)])
    least = np.minimum(forward, backward_shares(graph, wanted)).sum()
    moved = np.abs(after[-1][:nodes] - before[-1]).max(axis=1)
    return {
        "nodes": nodes, "relationships": relationships, "attachment": attachment, "new": new,
        "forward_2": forward[1], "forward_3": forward[2], "forward_10": forward[-1],
        "above_1e-6": float((moved > 1e-6).mean()), "most_ratio": STEPS / float(least),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small graph")
    given, rows = parser.parse_args(), []
    for size in QUICK if given.quick else SIZES:
        for attachment in ("uniform", "preferential"):
            for new in (10, 1_000):
                rows.append(measure(*size, attachment, new))
                show(rows[-1])
                keep("reach", rows, given.quick)


if __name__ == "__main__":
    main()
