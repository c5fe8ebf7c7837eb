"""How the mirror writes a relationship down: the one definition of codes and packed entries.

A relationship stands at both of its ends as (other end, code). The code is the relationship type
times two, plus one at the end that the relationship points to. An entry is packed into one number,
``node << 36 | other << 8 | code``, so that sorting, finding and merging are operations on plain
arrays: 2^28 nodes and 2^7 types fit. A log holds entries at the end that relationships point to;
one that is removed stands there with the code of the other end. The networks' kernels in
`models/inference` read the same codes; a test compares the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError

Ints = NDArray[np.int64]
Packed = NDArray[np.uint64]

MAX_RELATIONSHIP_TYPES = 128
MAX_NODES = 1 << 28  # rows of a mirror; node 2^28 would be packed as node 0
NODE_SHIFT = np.uint64(36)
OTHER_SHIFT = np.uint64(8)
OTHER_MASK = np.uint64(MAX_NODES - 1)
CODE_MASK = np.uint64((1 << 8) - 1)
OTHER_AND_CODE_MASK = np.uint64((1 << 36) - 1)


def require_room(nodes: int) -> None:
    """Refuse more nodes than entries have bits for: the next one would be taken for node 0.

    >>> require_room(MAX_NODES)
    """
    if nodes > MAX_NODES:
        raise GraphError(
            found=f"{nodes:,} nodes",
            needed=f"at most {MAX_NODES:,} in one mirror: its relationships number nodes by 28 "
            "bits",
            next_step="map a smaller label, or divide the graph into several projects "
            "(docs/scaling.md)",
        )


def relationship_code(type_index: int, points_here: bool) -> int:
    """Return the code of a relationship at one of its ends.

    >>> relationship_code(0, points_here=True), relationship_code(3, points_here=False)
    (1, 6)
    """
    return type_index * 2 + int(points_here)


def pack_entries(node: NDArray[Any], other: NDArray[Any], code: Any) -> Packed:
    """Return entries as packed numbers [n]; `code` is one number or an array [n].

    >>> unpack_ends(pack_entries(np.array([5]), np.array([7]), np.uint64(3)))
    (array([5]), array([7]))
    """
    left = node.astype(np.uint64) << NODE_SHIFT
    packed: Packed = left | other.astype(np.uint64) << OTHER_SHIFT | code
    return packed


def unpack_ends(entries: Packed) -> tuple[Ints, Ints]:
    """Return node and other end of each entry."""
    node = (entries >> NODE_SHIFT).astype(np.int64)
    return node, (entries >> OTHER_SHIFT & OTHER_MASK).astype(np.int64)


def unpack_codes(entries: Packed) -> NDArray[np.uint8]:
    """Return the code of each entry."""
    return (entries & CODE_MASK).astype(np.uint8)


def points_here(entries: Packed) -> NDArray[np.bool_]:
    """Return which entries stand at the end that their relationship points to."""
    return np.asarray((entries & np.uint64(1)) == 1)


def removal_of(arrows: Packed) -> Packed:
    """Return the log entries of the removal of relationships, given as they stand at their targets.

    >>> arrow = pack_entries(np.array([5]), np.array([7]), np.uint64(3))
    >>> points_here(removal_of(arrow)), bool((arrow_of(removal_of(arrow)) == arrow).all())
    (array([False]), True)
    """
    return np.asarray(arrows & ~np.uint64(1))


def arrow_of(logged: Packed) -> Packed:
    """Return the relationships that a log adds or removes, as they stand at their targets."""
    return np.asarray(logged | np.uint64(1))


def unpack_types(entries: Packed) -> Ints:
    """Return the relationship type of each entry."""
    return ((entries & CODE_MASK) >> np.uint64(1)).astype(np.int64)


def turn_to_source(entries: Packed) -> Packed:
    """Return entries that stand at their targets as they stand at their sources."""
    target, source = unpack_ends(entries)
    return pack_entries(source, target, (entries & CODE_MASK) - np.uint64(1))
