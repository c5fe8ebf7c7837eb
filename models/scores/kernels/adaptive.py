"""Compiled APS and RAPS: blocks of rows, turned so that each class is a run of memory.

Within a block every step is a loop over rows without branches, which the compiler turns into
vector instructions: a sorting network for the classes, running sums, comparisons. Arithmetic is
float64, in the order that ``ringfence.models.scores.adaptive`` defines, and gives its bits.

A block is one flat array, class y at y * rows. Offsets are unsigned, which spares the check for
negative indices, and arrays are passed whole, since a slice costs as much as sixty comparisons.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, Floats
from ringfence.models.compile import compiled, inlined, released

MAX_PROBABILITY = 1.001  # a probability, with float32 rounding of a softmax
Offset = np.uint64


@inlined
def turn(flat: Array, first: Any, size: Any, classes: Any, rows: Any, block: Array) -> None:
    """Copy rows first..first+size into the block, class by class."""
    for y in range(classes):
        source, target = first * classes + y, y * rows
        for b in range(size):
            block[target + b] = flat[source + b * classes]


@compiled
def exchange_levels(block: Array, upper: Any, lower: Any, size: Any) -> None:
    """Put the larger of each pair first. A NaN stays one of the pair."""
    for b in range(size):
        x, y = block[upper + b], block[lower + b]
        block[upper + b] = x if x > y else y
        block[lower + b] = y if x > y else x


@compiled
def exchange_levels_with(block: Array, place: Array, upper: Any, lower: Any, size: Any) -> None:
    """Do as exchange_levels does, and move the positions along."""
    for b in range(size):
        x, y, i, j = block[upper + b], block[lower + b], place[upper + b], place[lower + b]
        block[upper + b] = x if x > y else y
        block[lower + b] = y if x > y else x
        place[upper + b] = i if x > y else j
        place[lower + b] = j if x > y else i


@inlined
def sort(block: Array, network: Array, size: Any, rows: Any) -> None:
    """Sort each row of the block from the largest down."""
    for k in range(len(network)):
        exchange_levels(block, Offset(network[k, 0]) * rows, Offset(network[k, 1]) * rows, size)


@inlined
def sort_with(
    block: Array, place: Array, network: Array, size: Any, classes: Any, rows: Any
) -> None:
    """Sort, and note in place which class each value belongs to."""
    for y in range(classes):
        for b in range(size):
            place[y * rows + b] = y
    for k in range(len(network)):
        i, j = Offset(network[k, 0]) * rows, Offset(network[k, 1]) * rows
        exchange_levels_with(block, place, i, j, size)


@inlined
def count_bad(block: Array, total: Floats, size: Any, classes: Any, rows: Any) -> int:
    """Count rows of a sorted block that hold NaN (then their total is NaN) or no probabilities."""
    bad, last = 0, (classes - Offset(1)) * rows
    for b in range(size):
        good = block[last + b] >= 0.0 and block[b] <= MAX_PROBABILITY and total[b] == total[b]
        bad += 0 if good else 1
    return bad


@compiled
def cost_levels(
    block: Array,
    u: Floats,
    first: Any,
    penalties: Floats,
    costs: Floats,
    rho: Floats,
    held: Floats,
    extra: Floats,
    size: Any,
    rows: Any,
) -> None:
    """Write the cost of each sorted value; equal values share rho and penalty of their first."""
    for b in range(size):
        value = np.float64(block[b])
        held[b], extra[b], rho[b] = 0.0, penalties[0], value
        costs[b] = 0.0 + u[first + b] * value + penalties[0]
    for y in range(Offset(1), Offset(len(penalties))):
        at, before = y * rows, (y - Offset(1)) * rows
        for b in range(size):
            value, tied = np.float64(block[at + b]), block[at + b] == block[before + b]
            held[b] = held[b] if tied else rho[b]
            extra[b] = extra[b] if tied else penalties[y]
            costs[at + b] = held[b] + u[first + b] * value + extra[b]
            rho[b] += value


@released
def adaptive_scores(
    given: Array, u: Floats, penalties: Floats, network: Array, rows: int, scores: Floats
) -> int:
    """Write the scores of all classes; return the number of rows that are no probabilities."""
    flat, block = given.reshape(-1), np.empty(given.shape[1] * rows, given.dtype)
    place, costs = np.empty(len(block), np.uint32), np.empty(len(block))
    rho, held, extra, bad = np.empty(rows), np.empty(rows), np.empty(rows), 0
    classes, height = Offset(given.shape[1]), Offset(rows)
    for begin in range(0, len(given), rows):
        first, size = Offset(begin), Offset(min(rows, len(given) - begin))
        turn(flat, first, size, classes, height, block)
        sort_with(block, place, network, size, classes, height)
        cost_levels(block, u, first, penalties, costs, rho, held, extra, size, height)
        bad += count_bad(block, rho, size, classes, height)
        for y in range(classes):
            for b in range(size):
                scores[first + b, place[y * height + b]] = -costs[y * height + b]
    return bad


@compiled
def sum_above(
    block: Array,
    at: Any,
    chosen_values: Array,
    total: Floats,
    rho: Floats,
    larger: Array,
    size: Any,
) -> None:
    """Add this level's values to the total, and those above the chosen ones to rho; count these."""
    for b in range(size):
        value = np.float64(block[at + b])
        total[b] += value
        rho[b] += value if block[at + b] > chosen_values[b] else 0.0
        larger[b] += 1 if block[at + b] > chosen_values[b] else 0


@compiled
def adaptive_true(
    given: Array,
    u: Floats,
    chosen: Array,
    penalties: Floats,
    network: Array,
    rows: int,
    scores: Floats,
) -> int:
    """Write the score of one class per node; return as adaptive_scores does."""
    flat, block = given.reshape(-1), np.empty(given.shape[1] * rows, given.dtype)
    chosen_values, total = np.empty(rows, given.dtype), np.empty(rows)
    rho, larger, bad = np.empty(rows), np.empty(rows, np.int64), 0
    classes, height = Offset(given.shape[1]), Offset(rows)
    for begin in range(0, len(given), rows):
        first, size = Offset(begin), Offset(min(rows, len(given) - begin))
        turn(flat, first, size, classes, height, block)
        sort(block, network, size, height)
        for b in range(size):
            chosen_values[b] = given[first + b, chosen[first + b]]
            total[b], rho[b], larger[b] = 0.0, 0.0, 0
        for y in range(classes):
            sum_above(block, y * height, chosen_values, total, rho, larger, size)
        bad += count_bad(block, total, size, classes, height)
        for b in range(size):
            cost = rho[b] + u[first + b] * np.float64(chosen_values[b]) + penalties[larger[b]]
            scores[first + b] = -cost
    return bad
