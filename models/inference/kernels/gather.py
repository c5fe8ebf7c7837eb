"""Merging a node's base, late and removed relationships, compiled: sorted, each neighbour once."""

from __future__ import annotations

from typing import Any, NamedTuple

from ringfence.models.compile import compiled, inlined
from ringfence.models.inference.kernels.fetch import AHEAD, LINE_BYTES, fetch

Array = Any

ENTRIES_PER_LINE = LINE_BYTES // 4


class Lists(NamedTuple):
    """Entries by node: the base, what came since, and what of the base is removed.

    A node's part of others and codes is ``offsets[i] .. offsets[i + 1]``, sorted by other, then
    code. The base is indexed by row, the other two by a row's place among those that have any.
    """

    offsets: Array
    others: Array
    codes: Array
    late_offsets: Array
    late_others: Array
    late_codes: Array
    removed_offsets: Array
    removed_others: Array
    removed_codes: Array


@inlined
def node_bounds(row: Any, offsets: Array) -> Any:
    """A node that is newer than the base has nothing in it."""
    if row + 1 < len(offsets):
        return offsets[row], offsets[row + 1]
    return 0, 0


@inlined
def part_bounds(place: Any, offsets: Array) -> Any:
    """Bounds of a row that stands at a place; -1: it has nothing there."""
    if place >= 0:
        return offsets[place], offsets[place + 1]
    return 0, 0


@compiled
def count_entries(
    rows: Array, offsets: Array, late: Array, late_offsets: Array, out: Array
) -> None:
    """Fill ``out`` with an upper bound of how many sources each row has."""
    for r in range(len(rows)):
        low, high = node_bounds(rows[r], offsets)
        first, end = part_bounds(late[r], late_offsets)
        out[r] = high - low + end - first


@inlined
def first_from(others: Array, low: Any, high: Any, least: Any) -> Any:
    """The first place in low .. high whose entry is not below ``least``."""
    while low < high:
        middle = (low + high) // 2
        if others[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def list_neighbours(
    rows: Array, lists: Any, late: Array, removed: Array, takes: Array, least: Array,
    out_offsets: Array, out: Array,
) -> int:  # fmt: skip
    """Fill ``out`` with the neighbours of all rows through entries whose code is in ``takes``.

    One row after the other; each neighbour once, ascending, the row itself left out, and those
    below the row's number in ``least``.
    """
    others, codes, late_others, late_codes = (
        lists.others, lists.codes, lists.late_others, lists.late_codes
    )  # fmt: skip
    filled = 0
    for r in range(len(rows)):
        if r + AHEAD < len(rows):
            ahead, _ = node_bounds(rows[r + AHEAD], lists.offsets)
            fetch(others, ahead)
            fetch(others, ahead + ENTRIES_PER_LINE)
            fetch(codes, ahead)
        out_offsets[r] = filled
        row = rows[r]
        a, a_end = node_bounds(row, lists.offsets)
        b, b_end = part_bounds(late[r], lists.late_offsets)
        c, c_end = part_bounds(removed[r], lists.removed_offsets)
        if least[r] > 0:
            a = first_from(others, a, a_end, least[r])
            b = first_from(late_others, b, b_end, least[r])
        last = -1
        while a < a_end or b < b_end:
            if b >= b_end or (a < a_end and others[a] <= late_others[b]):
                other, code = others[a], codes[a]
                a += 1
                if c < c_end:
                    c = pass_smaller(other, code, lists, c, c_end)
                    if c < c_end and has_entry(other, code, lists, c):
                        continue
            else:
                other, code = late_others[b], late_codes[b]
                b += 1
            if takes[code] and other != last and other != row:
                out[filled] = other
                filled += 1
                last = other
    out_offsets[len(rows)] = filled
    return filled


@compiled
def count_neighbours(
    rows: Array, lists: Any, late: Array, removed: Array, undirected: Array, out: Array
) -> None:
    """Fill ``out`` with how many sources each row has."""
    others, codes, late_others, late_codes = (
        lists.others, lists.codes, lists.late_others, lists.late_codes
    )  # fmt: skip
    for r in range(len(rows)):
        row = rows[r]
        a, a_end = node_bounds(row, lists.offsets)
        b, b_end = part_bounds(late[r], lists.late_offsets)
        c, c_end = part_bounds(removed[r], lists.removed_offsets)
        last, count = -1, 0
        while a < a_end or b < b_end:
            if b >= b_end or (a < a_end and others[a] <= late_others[b]):
                other, code = others[a], codes[a]
                a += 1
                if c < c_end:
                    c = pass_smaller(other, code, lists, c, c_end)
                    if c < c_end and has_entry(other, code, lists, c):
                        continue
            else:
                other, code = late_others[b], late_codes[b]
                b += 1
            if other != last and other != row and (code & 1 or undirected[code >> 1]):
                count += 1
                last = other
        out[r] = count


@inlined
def has_entry(other: Any, code: Any, lists: Any, c: Any) -> Any:
    """Whether the removed entry at ``c`` is (other, code)."""
    return lists.removed_others[c] == other and lists.removed_codes[c] == code


@inlined
def pass_smaller(other: Any, code: Any, lists: Any, c: Any, end: Any) -> Any:
    """The first removed entry from ``c`` on that is not below (other, code)."""
    while c < end and (
        lists.removed_others[c] < other
        or (lists.removed_others[c] == other and lists.removed_codes[c] < code)
    ):
        c += 1
    return c


@compiled
def find_newest_changes(rows: Array, lists: Any, late: Array, changed: Array, out: Array) -> None:
    """Fill ``out`` with the newest change of each row and of all that touch it.

    Removed entries count too: they can only make a row look newer than it is, and the row did
    change when they were removed.
    """
    for r in range(len(rows)):
        newest = changed[rows[r]]
        low, high = node_bounds(rows[r], lists.offsets)
        for e in range(low, high):
            newest = max(newest, changed[lists.others[e]])
        low, high = part_bounds(late[r], lists.late_offsets)
        for e in range(low, high):
            newest = max(newest, changed[lists.late_others[e]])
        out[r] = newest
