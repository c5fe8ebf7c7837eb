"""Lists of floats as vectors: the server packs them, and no Python object is made per number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from neo4j.vector import Vector
from numpy.typing import NDArray

LONGEST = 4096  # numbers in one vector
LARGEST = float(np.finfo(np.float32).max)

# vector() ends the whole query at NaN, infinity, a null or a number too large for 32 bits, so that
# is looked at first: such lists come as they are, with their neighbours, and the client says which
# one can't be used and why. Bytes look like a list of integers here: of stored lists, only those of
# floats are packed.
PACKED = """[i IN range(0, size(lists) - 1, $together) | [part IN [lists[i .. i + $together]] |
  CASE WHEN all(one IN part WHERE one IS :: {kind} NOT NULL AND size(one) = $width)
  THEN [flat IN [coll.flatten(part)] |
    CASE WHEN coll.max(flat) <= $largest AND coll.min(flat) >= -$largest
    THEN vector(flat, size(flat), FLOAT32) ELSE part END][0]
  ELSE part END][0]]"""
STORED = "LIST<FLOAT NOT NULL>"
LISTED = "LIST<INTEGER NOT NULL | FLOAT NOT NULL>"  # several properties, made a list by the query

_KINDS = {"f32": ">f4", "f64": ">f8", "i8": ">i1", "i16": ">i2", "i32": ">i4", "i64": ">i8"}


def unpacked(parts: Sequence[Any], width: int) -> NDArray[np.float32] | list[Any]:
    """Return what PACKED gave as rows: a matrix [n, width], or a list where some were left out."""
    if parts and all(type(part) is Vector for part in parts):
        raw = b"".join(part.raw() for part in parts)
        return np.frombuffer(raw, ">f4").astype(np.float32).reshape(-1, width)
    return list(chain.from_iterable(_rows(part, width) for part in parts))


def _rows(part: Any, width: int) -> list[Any]:
    if type(part) is not Vector:
        return list(part)
    rows: list[Any] = numbers(part).reshape(-1, width).tolist()
    return rows


def numbers(vector: Vector) -> NDArray[Any]:
    """Return a vector's numbers, of its own type.

    >>> numbers(Vector([0.5, 2.0], "f32")).tolist()
    [0.5, 2.0]
    """
    return np.frombuffer(vector.raw(), _KINDS[vector.dtype.value])
