"""From rows as the driver gives them to columns; a row that can't be used gets its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError
from ringfence.connector.keys import encode_key

LONGEST_KEY = 512  # characters; longer ones don't fit a PostgreSQL index with room to spare


@dataclass(frozen=True, slots=True)
class Rejected:
    """A node that could not be used."""

    element_id: str
    node_key: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """Usable nodes as columns: typed keys, features [n, d], class names (None: unknown), times."""

    keys: list[str]
    features: NDArray[np.float32]
    classes: list[str | None]
    created_ns: NDArray[np.int64]
    rejected: list[Rejected]


class UnusableError(Exception):
    """Carries the reason for a quarantine row."""


def node_block(rows: Sequence[Any], width: int) -> NodeBlock:
    """Return rows of (id, key, features, class, ns) as columns; `width` numbers per node.

    True and False count as 1 and 0.
    """
    matrix = _matrix([row["features"] for row in rows], width)
    keys: list[str] = []
    classes: list[str | None] = []
    created: list[int] = []
    features: list[NDArray[np.float32]] = []
    rejected: list[Rejected] = []
    for position, row in enumerate(rows):
        key = None
        try:
            key = _key(row["key"])
            class_ = class_name(row["class"])
            if row["ns"] is None:
                raise UnusableError("created_at is missing")
            vector = _vector(row["features"], width) if matrix is None else matrix[position]
        except (UnusableError, GraphError) as error:
            rejected.append(Rejected(row["id"], key, str(error)))
            continue
        keys.append(key)
        classes.append(class_)
        created.append(row["ns"])
        features.append(vector)
    columns = np.stack(features) if features else np.empty((0, width), np.float32)
    return NodeBlock(keys, columns, classes, np.array(created, np.int64), rejected)


def class_name(value: object) -> str | None:
    """Return a class property as the name that sets use; None where the class is unknown."""
    if value is None:
        return None
    if isinstance(value, str | int) and "\x00" not in str(value):
        return str(value)
    raise UnusableError(f"the class is a {type(value).__name__}; text or an integer is needed")


def _key(value: object) -> str:
    if value is None:
        raise UnusableError("the key is missing")
    key = encode_key(value)
    if len(key) > LONGEST_KEY:
        raise UnusableError(f"the key has {len(key)} characters; {LONGEST_KEY} are the most")
    return key


def _matrix(lists: list[Any], width: int) -> NDArray[np.float32] | None:
    """The whole block at once, or None where some row needs a look of its own."""
    try:
        values = np.asarray(lists)
    except ValueError:  # rows of different lengths
        return None
    if values.dtype.kind not in "fib" or values.shape != (len(lists), width):
        return None
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if bool(np.isfinite(narrow).all()) else None


def _vector(value: object, width: int) -> NDArray[np.float32]:
    if value is None:
        raise UnusableError("features are missing")
    if not isinstance(value, list):
        raise UnusableError(f"features are a {type(value).__name__}; a list is needed")
    if len(value) != width:
        raise UnusableError(f"{len(value)} features; {width} are needed")
    if any(one is None for one in value):
        raise UnusableError("a feature is missing")
    wrong = [type(one).__name__ for one in value if not isinstance(one, bool | int | float)]
    if wrong:
        raise UnusableError(f"a feature is a {wrong[0]}; numbers are needed")
    with np.errstate(over="ignore"):
        vector = np.array(value, np.float64).astype(np.float32)
    if not np.isfinite(vector).all():
        raise UnusableError("a feature is NaN, infinite or too large for 32 bits")
    return vector
