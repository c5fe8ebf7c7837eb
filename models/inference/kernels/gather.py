"""Merging a node's base and late relationships, compiled: sorted, each neighbour once."""

from __future__ import annotations

from typing import Any

from ringfence.models.compile import compiled, inlined

Array = Any


@inlined
def _bounds(row: Any, offsets: Array) -> Any:
    """A node that is newer than the base has nothing in it."""
    if row + 1 < len(offsets):
        return offsets[row], offsets[row + 1]
    return 0, 0


@compiled
def room(rows: Array, offsets: Array, late: Array, late_offsets: Array) -> int:
    """An upper bound of how many sources the rows have together."""
    total = 0
    for r in range(len(rows)):
        low, high = _bounds(rows[r], offsets)
        total += high - low
        if late[r] >= 0:
            total += late_offsets[late[r] + 1] - late_offsets[late[r]]
    return total


@compiled
def list_neighbours(
    rows: Array, offsets: Array, others: Array, codes: Array,
    late_offsets: Array, late_others: Array, late_codes: Array, late: Array,
    undirected: Array, end: int, out_offsets: Array, out: Array,
) -> int:  # fmt: skip
    """Fill ``out`` with the sources of all rows, one row after the other.

    With ``end`` 1 rows are at the end that relationships point to: sources are their incoming
    neighbours. With 0 they are at the other end: sources are those they send messages to.
    """
    filled = 0
    for r in range(len(rows)):
        out_offsets[r] = filled
        row = rows[r]
        a, a_end = _bounds(row, offsets)
        b, b_end = 0, 0
        if late[r] >= 0:
            b, b_end = late_offsets[late[r]], late_offsets[late[r] + 1]
        last = -1
        while a < a_end or b < b_end:
            if b >= b_end or (a < a_end and others[a] <= late_others[b]):
                other, code = others[a], codes[a]
                a += 1
            else:
                other, code = late_others[b], late_codes[b]
                b += 1
            if other != last and other != row and ((code & 1) == end or undirected[code >> 1]):
                out[filled] = other
                filled += 1
                last = other
    out_offsets[len(rows)] = filled
    return filled


@compiled
def count_neighbours(
    rows: Array, offsets: Array, others: Array, codes: Array,
    late_offsets: Array, late_others: Array, late_codes: Array, late: Array,
    undirected: Array, out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` with how many sources each row has."""
    for r in range(len(rows)):
        row = rows[r]
        a, a_end = _bounds(row, offsets)
        b, b_end = 0, 0
        if late[r] >= 0:
            b, b_end = late_offsets[late[r]], late_offsets[late[r] + 1]
        last, found = -1, 0
        while a < a_end or b < b_end:
            if b >= b_end or (a < a_end and others[a] <= late_others[b]):
                other, code = others[a], codes[a]
                a += 1
            else:
                other, code = late_others[b], late_codes[b]
                b += 1
            if other != last and other != row and (code & 1 or undirected[code >> 1]):
                found += 1
                last = other
        out[r] = found


@compiled
def find_newest_changes(
    rows: Array, offsets: Array, others: Array, late_offsets: Array, late_others: Array,
    late: Array, changed: Array, out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` with the newest change of each row and of all that touch it."""
    for r in range(len(rows)):
        found = changed[rows[r]]
        low, high = _bounds(rows[r], offsets)
        for e in range(low, high):
            found = max(found, changed[others[e]])
        if late[r] >= 0:
            for e in range(late_offsets[late[r]], late_offsets[late[r] + 1]):
                found = max(found, changed[late_others[e]])
        out[r] = found
