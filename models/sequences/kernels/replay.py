"""Compiled replay of a growing graph under a two-layer GCN.

For node u with degree d (loop not counted), r = 1 / sqrt(d + 1) and z = x W1,

    sums_u   = sum over neighbours w of r_w z_w                         kept up to date by deltas
    folded_u = relu(r_u (sums_u + r_u z_u) + b1) W2                     computed on demand
    logits_v = r_v (sum over neighbours u of r_u folded_u + r_v folded_v) + b2

A new edge changes the degrees of its two ends, so it changes the sums of their neighbours and no
other row. Everything is float64.
"""

from __future__ import annotations

import math

from ringfence.models.arrays import Array, Floats
from ringfence.models.compile import compiled, inlined


@inlined
def add_row(sums: Floats, u: int, factor: float, z: Floats, t: int) -> None:
    """Add factor * z[t] to sums[u]."""
    for j in range(z.shape[1]):
        sums[u, j] += factor * z[t, j]


@compiled
def grow(
    edges: Array,
    first: int,
    last: int,
    tick: int,
    starts: Array,
    targets: Array,
    degrees: Array,
    marks: Array,
    before: Array,
    ends: Array,
    scale: Floats,
    z: Floats,
    sums: Floats,
    touched: Array,
) -> None:
    """Let edges[:, first:last] arrive; rows of ``targets`` hold neighbours in order of arrival."""
    count = 0
    for e in range(first, last):
        for side in range(2):
            t = edges[side, e]
            if marks[t] != tick:
                marks[t], before[t], ends[count] = tick, degrees[t], t
                count += 1
            degrees[t] += 1
    for i in range(count):
        t = ends[i]
        now = 1.0 / math.sqrt(degrees[t] + 1.0)
        change = now - scale[t]
        scale[t], touched[t] = now, tick
        for place in range(starts[t], starts[t] + before[t]):
            add_row(sums, targets[place], change, z, t)
            touched[targets[place]] = tick
        for place in range(starts[t] + before[t], starts[t] + degrees[t]):
            add_row(sums, targets[place], now, z, t)
            touched[targets[place]] = tick


@compiled
def fold(
    u: int, scale: Floats, z: Floats, sums: Floats, b1: Floats, w2: Floats, folded: Floats
) -> None:
    """Write relu(r_u (sums_u + r_u z_u) + b1) W2 to folded[u]."""
    r = scale[u]
    for c in range(w2.shape[1]):
        folded[u, c] = 0.0
    for j in range(w2.shape[0]):
        hidden = r * (sums[u, j] + r * z[u, j]) + b1[j]
        if hidden > 0.0:
            for c in range(w2.shape[1]):
                folded[u, c] += hidden * w2[j, c]


@compiled
def write_logits(
    v: int,
    tick: int,
    starts: Array,
    targets: Array,
    degrees: Array,
    scale: Floats,
    z: Floats,
    sums: Floats,
    touched: Array,
    b1: Floats,
    w2: Floats,
    b2: Floats,
    folded: Floats,
    folded_at: Array,
    row: Floats,
) -> None:
    """Write the logits of v to row, folding anew what has changed since it was folded last."""
    row[:] = 0.0
    for place in range(starts[v] - 1, starts[v] + degrees[v]):
        u = v if place < starts[v] else targets[place]
        if folded_at[u] < touched[u]:
            fold(u, scale, z, sums, b1, w2, folded)
            folded_at[u] = tick
        for c in range(len(row)):
            row[c] += scale[u] * folded[u, c]
    for c in range(len(row)):
        row[c] = scale[v] * row[c] + b2[c]


@inlined
def is_stale(
    v: int, written_at: Array, starts: Array, targets: Array, degrees: Array, touched: Array
) -> bool:
    """Whether anything that the logits of v depend on has changed since they were written."""
    if written_at[v] < touched[v]:
        return True
    for place in range(starts[v], starts[v] + degrees[v]):
        if written_at[v] < touched[targets[place]]:
            return True
    return False


@compiled
def replay_ticks(
    tick: int,
    steps: Array,
    edges: Array,
    edge_ends: Array,
    arrival: Array,
    watched: Array,
    requests: Array,
    request_ends: Array,
    starts: Array,
    targets: Array,
    degrees: Array,
    marks: Array,
    before: Array,
    ends: Array,
    scale: Floats,
    z: Floats,
    sums: Floats,
    touched: Array,
    b1: Floats,
    w2: Floats,
    b2: Floats,
    folded: Floats,
    folded_at: Array,
    written_at: Array,
    out_tick: Array,
    out_node: Array,
    out_degree: Array,
    out_asked: Array,
    out_logits: Floats,
) -> tuple[int, int]:
    """Replay from ``tick`` until the output is full; returns the next tick and the rows written.

    At each tick the edges of edge_ends[tick]:edge_ends[tick + 1] arrive, then the watched nodes
    whose logits changed are written, then the requested ones.
    """
    rows = 0
    while tick < len(steps):
        asked = request_ends[tick + 1] - request_ends[tick]
        if rows + len(watched) + asked > len(out_tick):
            break
        grow(
            edges, edge_ends[tick], edge_ends[tick + 1], tick, starts, targets, degrees, marks,
            before, ends, scale, z, sums, touched,
        )  # fmt: skip
        for i in range(len(watched) + asked):
            wanted = i >= len(watched)
            v = requests[request_ends[tick] + i - len(watched)] if wanted else watched[i]
            if not wanted:
                if arrival[v] > steps[tick]:
                    continue
                if not is_stale(v, written_at, starts, targets, degrees, touched):
                    continue
                written_at[v] = tick
            write_logits(
                v, tick, starts, targets, degrees, scale, z, sums, touched, b1, w2, b2, folded,
                folded_at, out_logits[rows],
            )  # fmt: skip
            out_tick[rows], out_node[rows], out_asked[rows] = tick, v, wanted
            out_degree[rows] = degrees[v]
            rows += 1
        tick += 1
    return tick, rows
