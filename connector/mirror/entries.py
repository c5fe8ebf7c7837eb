"""Sets of packed entries as sorted arrays: found, grouped, added to and taken from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.format import (
    Ints,
    Packed,
    arrow_of,
    turn_to_source,
    unpack_codes,
    unpack_ends,
)

Grouped = tuple[Ints, Ints, NDArray[np.int32], NDArray[np.uint8]]
"""Nodes [m], offsets [m + 1], and the others and codes of all of them."""


def group_by_node(entries: Packed) -> Grouped:
    """Return sorted entries by the node that they stand at."""
    node, other = unpack_ends(entries)
    nodes, starts = np.unique(node, return_index=True)
    offsets = np.append(starts, len(node)).astype(np.int64)
    return nodes, offsets, other.astype(np.int32), unpack_codes(entries)


def at_both_ends(arrows: Packed) -> Packed:
    """Return relationships, given as they stand at their targets, at both ends, sorted."""
    return np.sort(np.concatenate([arrows, turn_to_source(arrows)]), kind="stable")


def with_arrows(entries: Packed, arrows: Packed) -> Packed:
    """Return entries with both ends of some relationships that are not among them."""
    if not len(arrows):
        return entries
    return np.sort(np.concatenate([entries, arrows, turn_to_source(arrows)]), kind="stable")


def without_arrows(entries: Packed, arrows: Packed) -> Packed:
    """Return entries without both ends of some relationships."""
    if not len(arrows):
        return entries
    kept: Packed = entries[~among(entries, at_both_ends(arrows))]
    return kept


def last_entry_per_edge(logged: Packed) -> Packed:
    """Return the last log entry of each relationship."""
    order = np.argsort(arrow_of(logged), kind="stable")
    arrows = arrow_of(logged)[order]
    last = np.append(arrows[1:] != arrows[:-1], True)
    latest: Packed = logged[order][last]
    return latest


def distinct(values: Packed) -> Packed:
    """Return values sorted, each once; several times faster than the hashing of np.unique."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    firsts: Packed = ordered[first]
    return firsts


def among(values: Packed, ordered: Packed) -> NDArray[np.bool_]:
    """Return which values stand in a sorted array."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)
