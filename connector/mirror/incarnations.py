"""Which node of its key a row of the mirror is, as the record counts them.

A key can be used again by another node. `Mirror.incarnations` has the number of the node at a row
where that was ever in doubt; every other row is the first node of its key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import record_key, split_record_key
from ringfence.connector.mirror.integer_keys import ABSENT
from ringfence.connector.mirror.mirror import Mirror

Rows = NDArray[np.int64]


def record_keys_at(mirror: Mirror, rows: Rows) -> Sequence[str]:
    """Return the record's keys of the nodes at some rows; strings are made on demand."""
    column = mirror.keys.column(rows)
    if not any(mirror.incarnations.values()):
        return column
    numbers = [mirror.incarnations.get(row, 0) for row in rows.tolist()]
    if not any(numbers):
        return column
    return [record_key(key, number) for key, number in zip(column, numbers, strict=True)]


def find_recorded(mirror: Mirror, record_keys: Sequence[str]) -> Rows:
    """Return the row of each node on record; -1 where it left, also if another has its key now."""
    if not mirror.incarnations:
        return mirror.find(record_keys)  # a key with a number is no node's own
    pairs = [split_record_key(key) for key in record_keys]
    rows = mirror.find([typed_key for typed_key, _ in pairs])
    here = [mirror.incarnations.get(row, 0) for row in rows.tolist()]
    same = [number == now for (_, number), now in zip(pairs, here, strict=True)]
    return np.where(np.array(same, np.bool_), rows, ABSENT)
