"""Neighbours by channel, and their sums: cached from pass to pass if the list only grew."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import compiled, inlined, released
from ringfence.models.inference.kernels.gather import part_bounds
from ringfence.models.inference.kernels.project import project

Array = Any

HASH_FACTOR = np.uint64(0x9E3779B185EBCA87)
NO_SLOT = -1
BETWEEN = np.uint64(1 << 63)  # no entry is that large
CODE_BITS = np.uint64(8)


@released
def multiply_rows(
    start: int, stop: int, places: Array, values: Array, weights: Array, out: Array
) -> None:
    """out_r = values at places_r . weights."""
    for r in range(start, stop):
        project(values[places[r]], weights, out[r])


@released
def mean_rows(
    start: int, stop: int, offsets: Array, sources: Array, places: Array, values: Array, out: Array
) -> None:
    """out_r = mean of values at the places of r's sources, summed in float64 in their order."""
    width = values.shape[1]
    total = np.empty(width, np.float64)
    for r in range(start, stop):
        total[:] = 0.0
        for e in range(offsets[r], offsets[r + 1]):
            j = places[sources[e]]
            for c in range(width):
                total[c] += values[j, c]
        count = max(offsets[r + 1] - offsets[r], 1)
        for c in range(width):
            out[r, c] = total[c] / count


@released
def mean_with_cached_sums(
    start: int, stop: int, offsets: Array, sources: Array, places: Array, values: Array,
    least: Array, slots: Array, counts: Array, hashes: Array, sums: Array, out: Array,
    heard: Array, gathered: Array,
) -> None:  # fmt: skip
    """As `mean_rows`, going on from the sum in a row's slot where its list begins as it was then.

    A slot holds the sum over the first ``counts`` sources and a hash of their numbers. Sums run in
    the order of the list, so going on adds the same numbers in the same order as beginning anew.
    Where ``least`` is above 0 the beginning is known to be the same, and only what follows it is
    listed; else the whole list is, and its beginning is compared by the hash. ``heard``: how many
    sources a row has in all.
    """
    width = values.shape[1]
    total = np.empty(width, np.float64)
    for r in range(start, stop):
        first, end, slot = offsets[r], offsets[r + 1], slots[r]
        total[:] = 0.0
        at, before, mark, goes_on = first, 0, np.uint64(0), False
        if least[r] > 0:
            before, mark, goes_on = counts[slot], hashes[slot], True
        elif slot != NO_SLOT and 0 <= counts[slot] <= end - first:
            for e in range(first, first + counts[slot]):
                mark = mark * HASH_FACTOR + np.uint64(sources[e] + 1)
            goes_on = mark == hashes[slot]
            if goes_on:
                at = first + counts[slot]
            else:
                mark = np.uint64(0)
        if goes_on:
            for c in range(width):
                total[c] = sums[slot, c]
        gathered[r] = end - at
        for e in range(at, end):
            j = places[sources[e]]
            for c in range(width):
                total[c] += values[j, c]
        heard[r] = before + end - first
        if slot != NO_SLOT:
            for e in range(at, end):
                mark = mark * HASH_FACTOR + np.uint64(sources[e] + 1)
            counts[slot], hashes[slot] = heard[r], mark
            for c in range(width):
                sums[slot, c] = total[c]
        count = max(heard[r], 1)
        for c in range(width):
            out[r, c] = total[c] / count


@inlined
def hash_part(
    mark: Any, place: Any, offsets: Array, others: Array, codes: Array, least: Any
) -> Any:
    """Go on with a hash over one part of a row's entries, those of nodes below ``least``."""
    at, end = part_bounds(place, offsets)
    while at < end and others[at] < least:
        entry = (np.uint64(others[at] + 1) << CODE_BITS) | np.uint64(codes[at])
        mark = mark * HASH_FACTOR + entry
        at += 1
    return mark


@compiled
def hash_late_lists(lists: Any, added: Array, removed: Array, least: Array, out: Array) -> None:
    """Fill ``out`` with a hash of the entries added to and removed from each row's base list.

    With the same base two lists are the same where these are, so a long list is compared without
    being read. added, removed: a row's places among those that have any.
    """
    for r in range(len(out)):
        mark = hash_part(
            np.uint64(0), added[r], lists.late_offsets, lists.late_others, lists.late_codes,
            least[r],
        )  # fmt: skip
        out[r] = hash_part(
            mark * HASH_FACTOR + BETWEEN, removed[r], lists.removed_offsets, lists.removed_others,
            lists.removed_codes, least[r],
        )  # fmt: skip
