"""Compiled APS and RAPS: blocks of rows, turned so that each class is a run of memory.

Within a block every step is a loop over rows without branches, which the compiler turns into
vector instructions: a sorting network for the classes, running sums, comparisons. With one u per
node the costs rho + u v grow along the sorted values v, so a prediction set is "probability at
least the row's cut" and needs no positions at all. Arithmetic is float64, in the order that
``ringfence.models._adaptive`` defines, and gives its bits.
"""

from __future__ import annotations

import numpy as np

from ringfence.models._arrays import Array, Floats
from ringfence.models._compile import compiled
from ringfence.models._rank_kernels import look_up_each

LARGEST = 1.001  # a probability, with float32 rounding of a softmax


@compiled
def turn(flat: Array, first: int, size: int, block: Array) -> None:
    """Copy rows first..first+size into the block, class by class."""
    classes = len(block)
    for y in range(classes):
        row, base = block[y], first * classes + y
        for b in range(size):
            row[b] = flat[base + b * classes]


@compiled
def exchange(upper: Array, lower: Array, size: int) -> None:
    """Put the larger of each pair into upper. A NaN stays one of the pair."""
    for b in range(size):
        x, y = upper[b], lower[b]
        upper[b] = x if x > y else y
        lower[b] = y if x > y else x


@compiled
def exchange_with(upper: Array, lower: Array, one: Array, other: Array, size: int) -> None:
    """Do as exchange does, and move the positions along."""
    for b in range(size):
        x, y, i, j = upper[b], lower[b], one[b], other[b]
        upper[b] = x if x > y else y
        lower[b] = y if x > y else x
        one[b] = i if x > y else j
        other[b] = j if x > y else i


@compiled
def sort_with(block: Array, place: Array, network: Array, size: int) -> None:
    """Sort each row of the block from the largest down; place says which class is where."""
    for y in range(len(block)):
        place[y] = y
    for k in range(len(network)):
        i, j = network[k, 0], network[k, 1]
        exchange_with(block[i], block[j], place[i], place[j], size)


@compiled
def cut_level(
    row: Array, u: Floats, limit: Floats, penalty: float, rho: Floats, cut: Floats, size: int
) -> None:
    """Lower the cut to this value where its cost is within the limit."""
    for b in range(size):
        value, above = np.float64(row[b]), rho[b]
        cut[b] = value if above + u[b] * value + penalty <= limit[b] else cut[b]
        rho[b] = above + value


@compiled
def count_bad(largest: Array, smallest: Array, total: Floats, size: int) -> int:
    """Count rows that hold NaN (then their total is NaN) or no probabilities."""
    bad = 0
    for b in range(size):
        good = smallest[b] >= 0.0 and largest[b] <= LARGEST and total[b] == total[b]
        bad += 0 if good else 1
    return bad


@compiled
def adaptive_sets(
    given: Array,
    u: Floats,
    limits: Floats,
    penalties: Floats,
    network: Array,
    rows: int,
    sets: Array,
) -> int:
    """Write the sets {y : cost(y) <= limit}; return the number of rows that are no probabilities.

    ``limits`` holds one number for all nodes or one per node; ``rows`` is the size of a block.
    """
    n, classes = given.shape
    flat, block = given.reshape(-1), np.empty((classes, rows), given.dtype)
    rho, cut, limit = np.empty(rows), np.empty(rows), np.full(rows, limits[0])
    least, bad = np.empty(rows, given.dtype), 0
    for first in range(0, n, rows):
        size = min(rows, n - first)
        turn(flat, first, size, block)
        for k in range(len(network)):
            exchange(block[network[k, 0]], block[network[k, 1]], size)
        if len(limits) > 1:
            limit[:size] = limits[first : first + size]
        rho[:], cut[:] = 0.0, np.inf
        for y in range(classes):
            cut_level(block[y], u[first:], limit, penalties[y], rho, cut, size)
        bad += count_bad(block[0], block[classes - 1], rho, size)
        least[:] = cut  # each is one of the row's own values: float32 holds it exactly
        for b in range(size):
            for y in range(classes):
                sets[first + b, y] = given[first + b, y] >= least[b]
    return bad


@compiled
def cost_levels(
    block: Array, u: Floats, penalties: Floats, costs: Floats, rho: Floats, held: Floats, size: int
) -> None:
    """Write the cost of each sorted value; equal values share rho and penalty of their first."""
    rho[:] = 0.0
    for y in range(len(block)):
        row, before, cost = block[y], block[max(y - 1, 0)], costs[y]
        for b in range(size):
            value, tied = np.float64(row[b]), y > 0 and row[b] == before[b]
            above = held[0, b] if tied else rho[b]
            extra = held[1, b] if tied else penalties[y]
            cost[b] = above + u[b] * value + extra
            held[0, b], held[1, b] = above, extra
            rho[b] += value


@compiled
def adaptive_scores(
    given: Array, u: Floats, penalties: Floats, network: Array, rows: int, found: Floats
) -> int:
    """Write the scores of all classes; return the number of rows that are no probabilities."""
    n, classes = given.shape
    flat, block = given.reshape(-1), np.empty((classes, rows), given.dtype)
    place, costs = np.empty((classes, rows), np.int32), np.empty((classes, rows))
    rho, held, bad = np.empty(rows), np.empty((2, rows)), 0
    for first in range(0, n, rows):
        size = min(rows, n - first)
        turn(flat, first, size, block)
        sort_with(block, place, network, size)
        cost_levels(block, u[first:], penalties, costs, rho, held, size)
        bad += count_bad(block[0], block[classes - 1], rho, size)
        for y in range(classes):
            for b in range(size):
                found[first + b, np.uint32(place[y, b])] = -costs[y, b]
    return bad


@compiled
def adaptive_p_values(
    given: Array,
    u: Floats,
    penalties: Floats,
    network: Array,
    rows: int,
    ordered: Floats,
    low: float,
    scale: float,
    starts: Array,
    table: Floats,
    found: Floats,
) -> int:
    """Write p-values of all classes without keeping scores; the rest as adaptive_scores."""
    n, classes = given.shape
    flat, block = given.reshape(-1), np.empty((classes, rows), given.dtype)
    place, costs = np.empty((classes, rows), np.int32), np.empty((classes, rows))
    rho, held, bad = np.empty(rows), np.empty((2, rows)), 0
    for first in range(0, n, rows):
        size = min(rows, n - first)
        turn(flat, first, size, block)
        sort_with(block, place, network, size)
        cost_levels(block, u[first:], penalties, costs, rho, held, size)
        bad += count_bad(block[0], block[classes - 1], rho, size)
        for y in range(classes):
            scores = costs[y]
            for b in range(size):
                scores[b] = -scores[b]
            look_up_each(scores[:size], ordered, low, scale, starts, table, scores)
            for b in range(size):
                found[first + b, np.uint32(place[y, b])] = scores[b]
    return bad


@compiled
def sum_above(row: Array, own: Array, rho: Floats, larger: Array, size: int) -> None:
    """Add the row's values above each node's own one, and count them."""
    for b in range(size):
        rho[b] += np.float64(row[b]) if row[b] > own[b] else 0.0
        larger[b] += 1 if row[b] > own[b] else 0


@compiled
def adaptive_true(
    given: Array,
    u: Floats,
    chosen: Array,
    penalties: Floats,
    network: Array,
    rows: int,
    found: Floats,
) -> int:
    """Write the score of one class per node; the rest as adaptive_scores."""
    n, classes = given.shape
    flat, block = given.reshape(-1), np.empty((classes, rows), given.dtype)
    own, total = np.empty(rows, given.dtype), np.empty(rows)
    rho, larger, bad = np.empty(rows), np.empty(rows, np.int64), 0
    for first in range(0, n, rows):
        size = min(rows, n - first)
        turn(flat, first, size, block)
        for k in range(len(network)):
            exchange(block[network[k, 0]], block[network[k, 1]], size)
        for b in range(size):
            own[b] = given[first + b, chosen[first + b]]
        total[:], rho[:], larger[:] = 0.0, 0.0, 0
        for y in range(classes):
            total += block[y]
            sum_above(block[y], own, rho, larger, size)
        bad += count_bad(block[0], block[classes - 1], total, size)
        for b in range(size):
            cost = rho[b] + u[first + b] * np.float64(own[b]) + penalties[larger[b]]
            found[first + b] = -cost
    return bad
