"""Compiled parts of a softmax, of its largest probability and of its entropy, row by row.

exp and log are numpy's, between these: its vector code and the C library, which compiled code would
call, give other last bits, and the record keeps them.

Sums are numpy's pairwise sums, in its order: eight running sums over up to 128 values, added as a
tree; longer rows are halved. `sum_plan` says where.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, Floats
from ringfence.models.compile import inlined, released

LANES = 8  # running sums of a part
MAX_DEPTH = 64  # of halvings: more than any row has


@released
def subtract_largest(logits: Array, out: Floats) -> None:
    """Write each row less its largest number, as float64."""
    classes = logits.shape[1]
    for i in range(len(logits)):
        largest = np.float64(logits[i, 0])
        for y in range(1, classes):
            value = np.float64(logits[i, y])
            largest = value if value > largest else largest
        for y in range(classes):
            out[i, y] = np.float64(logits[i, y]) - largest


@inlined
def part_sum(values: Floats, i: Any, first: Any, size: Any) -> Any:
    """Return the sum of values[i, first : first + size], size at most 128."""
    if size < LANES:
        total = 0.0
        for y in range(first, first + size):
            total += values[i, y]
        return total
    a, b, c, d = values[i, first], values[i, first + 1], values[i, first + 2], values[i, first + 3]
    e, f = values[i, first + 4], values[i, first + 5]
    g, h = values[i, first + 6], values[i, first + 7]
    whole = size - size % LANES
    for y in range(first + LANES, first + whole, LANES):
        a += values[i, y]
        b += values[i, y + 1]
        c += values[i, y + 2]
        d += values[i, y + 3]
        e += values[i, y + 4]
        f += values[i, y + 5]
        g += values[i, y + 6]
        h += values[i, y + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for y in range(first + whole, first + size):
        total += values[i, y]
    return total


@inlined
def row_sum(values: Floats, i: Any, plan: Array, waiting: Floats) -> Any:
    """Return the sum of a row: of each part of the plan, added to so many sums that wait."""
    total, first, depth = 0.0, 0, 0
    for k in range(len(plan)):
        total = part_sum(values, i, first, plan[k, 0])
        first += plan[k, 0]
        for _ in range(plan[k, 1]):
            depth -= 1
            total = waiting[depth] + total
        waiting[depth] = total
        depth += 1
    return total


@released
def divide_by_sums(values: Floats, plan: Array, top: Floats) -> None:
    """Divide each row by its sum; write its largest quotient."""
    waiting = np.empty(MAX_DEPTH)
    for i in range(len(values)):
        total, largest = row_sum(values, i, plan, waiting), 0.0
        for y in range(values.shape[1]):
            share = values[i, y] / total
            values[i, y] = share
            largest = share if share > largest else largest
        top[i] = largest


@released
def sum_entropies(probabilities: Floats, logs: Floats, plan: Array, entropy: Floats) -> None:
    """Write minus the sum of p log p of each row; overwrites the logarithms."""
    waiting = np.empty(MAX_DEPTH)
    for i in range(len(logs)):
        for y in range(logs.shape[1]):
            logs[i, y] *= probabilities[i, y]
        entropy[i] = -row_sum(logs, i, plan, waiting)
