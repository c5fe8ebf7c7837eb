"""Lists of floats as vectors: the server packs them, and no Python object is made per number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.neo4j.bolt import Vector
from ringfence.connector.neo4j.driver import Graph

MAX_VECTOR_NUMBERS = 4096  # Neo4j's limit
MAX_FLOAT32 = float(np.finfo(np.float32).max)

# So many nodes' lists are fetched, joined and packed at a time; all of a block's at once would be
# copied by the server's garbage collector again and again. Bytes look like a list of integers here:
# of stored lists, only those of floats are packed. What isn't comes as it is, with its neighbours,
# and the client says which one can't be used and why.
PACKED = """[i IN range(0, size(block) - 1, $together) |
  [part IN [[n IN block[i .. i + $together] | {list_}]] |
  CASE WHEN all(one IN part WHERE one IS :: {kind} NOT NULL AND size(one) = $width)
  THEN {vector} ELSE part END][0]]"""
# vector() ends the whole query at NaN, infinity or a number too large for 32 bits. To look for one
# first costs a good part of a read, so that is done only where a query was refused.
TRUSTED = "vector(coll.flatten(part), $width * size(part), FLOAT32)"
CHECKED = """[flat IN [coll.flatten(part)] |
    CASE WHEN coll.max(flat) <= $largest AND coll.min(flat) >= -$largest
    THEN vector(flat, size(flat), FLOAT32) ELSE part END][0]"""
STORED = "LIST<FLOAT NOT NULL>"
LISTED = "LIST<INTEGER NOT NULL | FLOAT NOT NULL>"  # several properties, made a list by the query

_KINDS = {"f32": ">f4", "f64": ">f8", "i8": ">i1", "i16": ">i2", "i32": ">i4", "i64": ">i8"}


def cypher_prefix(graph: Graph) -> str:
    """Return the language version of a query: only Cypher 25 knows vectors.

    Servers without it get no prefix.
    """
    return "CYPHER 25" if graph.has_vectors else ""


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
