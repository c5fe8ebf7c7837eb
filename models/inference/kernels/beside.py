"""Hashes of what stands beside a row's base list: entries that came, and entries that went.

With the same base two lists are the same where these are, so a long list is compared without being
read. A hash may end at a bound: entries of nodes from ``least`` on are left out of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import compiled, inlined
from ringfence.models.inference.kernels.gather import part_bounds
from ringfence.models.inference.kernels.typed import HASH_FACTOR

Array = Any

BETWEEN = np.uint64(1 << 63)  # no entry is that large
CODE_BITS = np.uint64(8)


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
def hash_beside(lists: Any, late: Array, removed: Array, least: Array, out: Array) -> None:
    """Fill ``out`` with each row's hash; late, removed: its places among those that have any."""
    for r in range(len(out)):
        mark = hash_part(
            np.uint64(0), late[r], lists.late_offsets, lists.late_others, lists.late_codes,
            least[r],
        )  # fmt: skip
        out[r] = hash_part(
            mark * HASH_FACTOR + BETWEEN, removed[r], lists.removed_offsets, lists.removed_others,
            lists.removed_codes, least[r],
        )  # fmt: skip
