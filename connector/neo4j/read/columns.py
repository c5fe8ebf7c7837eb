"""From columns as the driver gives them to arrays; a row that can't be used gets its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError
from ringfence.connector.keys import MAX_KEY_CHARS, encode_key
from ringfence.connector.mirror import (
    CLASSIFIED,
    NodeBlock,
    RawBlock,
    TypedKeys,
    context_key,
    context_keys,
)
from ringfence.connector.neo4j.bolt import Vector
from ringfence.connector.neo4j.read.vectors import numbers
from ringfence.connector.records import RejectedNode

FLOAT_BYTES = 4
MAX_CLASS_BYTES = 512  # of UTF-8: it stands beside a key of up to 2,048 in a PostgreSQL index
MAX_SHOWN_CHARS = 200  # of a value that a quarantine row shows


class UnusableError(Exception):
    """Carries the reason for a quarantine row."""


@dataclass(frozen=True, slots=True)
class UsableRows:
    """The rows of a block that can be used, by their places in it, and why the others can't."""

    places: list[int]
    keys: list[str]
    classes: list[str | None]
    created_ns: NDArray[np.int64]
    rejected: list[RejectedNode]


def node_block(
    width: int,
    ids: Sequence[str],
    keys: Sequence[Any],
    features: Sequence[Any] | NDArray[np.float32],
    classes: Sequence[Any],
    ns: Sequence[Any],
) -> NodeBlock:
    """Return columns as the server gives them as usable ones; `width` numbers per node.

    True and False count as 1 and 0.
    """
    matrix, vectors = _matrix(features, width), {}

    def require_features(place: int) -> None:
        vectors[place] = _vector(features[place], width)

    usable = usable_rows(ids, keys, classes, ns, require_features if matrix is None else None)
    if matrix is None:
        rows = [vectors[place] for place in usable.places]
        matrix = np.stack(rows) if rows else np.empty((0, width), np.float32)
    elif usable.rejected:
        matrix = matrix[usable.places]
    return NodeBlock(usable.keys, matrix, usable.classes, usable.created_ns, usable.rejected)


def raw_block(
    label: int,
    ids: Sequence[str],
    keys: Sequence[Any],
    columns: Sequence[list[Any]],
    classes: Sequence[Any],
    ns: Sequence[Any],
) -> RawBlock:
    """Return nodes with raw columns; only a key, a class or a creation time can keep one out.

    A class that is neither text, integer nor boolean counts as not known.
    """
    known = [value if isinstance(value, str | int) else None for value in classes]
    usable = usable_rows(ids, keys, known, ns)
    if usable.rejected:
        columns = [[column[place] for place in usable.places] for column in columns]
    mirror_keys = [context_key(label, key) for key in usable.keys]
    return RawBlock(
        label, mirror_keys, list(columns), usable.classes, usable.created_ns, usable.rejected
    )


def usable_rows(
    ids: Sequence[str],
    keys: Sequence[Any],
    classes: Sequence[Any],
    ns: Sequence[Any],
    require: Callable[[int], None] | None = None,
) -> UsableRows:
    """Return the rows whose key, class and time can be used, and that `require` accepts.

    Where everything is as usual, no row is looked at by itself.
    """
    typed, names = typed_keys(keys), _class_names(classes)
    usable = [key for key in typed if key]
    fine = len(usable) == len(keys) and max(map(len, usable), default=0) <= MAX_KEY_CHARS
    if fine and require is None and names is not None and set(map(type, ns)) <= {int}:
        return UsableRows(list(range(len(ids))), usable, names, np.array(ns, np.int64), [])
    return _row_by_row(ids, keys, classes, ns, require)


def _row_by_row(
    ids: Sequence[str],
    keys: Sequence[Any],
    classes: Sequence[Any],
    ns: Sequence[Any],
    require: Callable[[int], None] | None,
) -> UsableRows:
    good: list[tuple[int, str, str | None, int]] = []
    rejected: list[RejectedNode] = []
    for place, element_id in enumerate(ids):
        key = None
        try:
            key = _key(keys[place])
            row = (place, key, class_name(classes[place]), _created_ns(ns[place]))
            if require is not None:
                require(place)
        except (UnusableError, GraphError) as error:
            rejected.append(RejectedNode(element_id, key, str(error)))
            continue
        good.append(row)
    return UsableRows(
        [row[0] for row in good], [row[1] for row in good], [row[2] for row in good],
        np.array([row[3] for row in good], np.int64), rejected,
    )  # fmt: skip


def typed_keys(values: Sequence[Any]) -> list[str | None]:
    """Return keys as typed text, None where a value can't be one.

    >>> typed_keys([1, "a", None, True])
    ['i:1', 's:a', None, None]
    """
    kinds = set(map(type, values))
    if kinds == {int}:
        return [f"i:{value}" for value in values]
    if kinds == {str} and not any("\x00" in value for value in values):
        return [f"s:{value}" for value in values]
    return [_or_none(value) for value in values]


def mirror_keys(label: int, values: list[Any]) -> TypedKeys:
    """Return keys of a label's nodes as the mirror has them; integers stay what they are.

    >>> mirror_keys(0, [3]), mirror_keys(2, [3, "a"])
    (array([3]), ['@2:i:3', '@2:s:a'])
    """
    if label == CLASSIFIED and set(map(type, values)) == {int}:
        return np.array(values, np.int64)
    return context_keys(label, typed_keys(values))


def _or_none(value: object) -> str | None:
    try:
        return encode_key(value)
    except GraphError:
        return None


def class_name(value: object) -> str | None:
    """Return a class property as the name that sets use; None where the class is unknown."""
    if value is None:
        return None
    if not isinstance(value, str | int) or "\x00" in (name := str(value)):
        raise UnusableError(f"the class is a {type(value).__name__}; text or an integer is needed")
    if (size := len(name.encode())) > MAX_CLASS_BYTES:
        raise UnusableError(f"the class has {size} bytes of UTF-8; {MAX_CLASS_BYTES} are the most")
    return name


def _is_storable(name: str) -> bool:
    return "\x00" not in name and len(name.encode()) <= MAX_CLASS_BYTES


def _class_names(values: Sequence[Any]) -> list[str | None] | None:
    if not set(map(type, values)) <= {str, int, type(None)}:
        return None
    names = {value: None if value is None else str(value) for value in set(values)}
    if any(name and not _is_storable(name) for name in names.values()):
        return None
    return [names[value] for value in values]


def _key(value: object) -> str:
    if value is None:
        raise UnusableError("the key is missing")
    key = encode_key(value)
    if len(key) > MAX_KEY_CHARS:
        raise UnusableError(f"the key has {len(key)} characters; {MAX_KEY_CHARS} are the most")
    return key


def _created_ns(value: object) -> int:
    """Nanoseconds; the server sends text about a time that has none."""
    if value is None:
        raise UnusableError("created_at is missing")
    if not isinstance(value, int):
        shown = str(value).removesuffix(" NOT NULL").replace("\x00", "")[:MAX_SHOWN_CHARS]
        raise UnusableError(f"created_at can't be used: {shown}")
    return value


def _matrix(lists: Sequence[Any] | NDArray[np.float32], width: int) -> NDArray[np.float32] | None:
    """The whole block at once, or None where some row needs a check of its own."""
    if isinstance(lists, np.ndarray):  # the server has checked every number
        return lists
    kinds = set(map(type, lists))
    if kinds == {Vector} and set(map(len, lists)) == {width}:
        lists = np.concatenate([numbers(vector) for vector in lists]).reshape(len(lists), width)
    if kinds == {bytes} and set(map(len, lists)) == {width * FLOAT_BYTES}:
        narrow = np.frombuffer(b"".join(lists), "<f4").reshape(len(lists), width)
        return narrow if bool(np.isfinite(narrow).all()) else None
    try:
        values = np.asarray(lists)
    except (ValueError, TypeError):  # rows of different lengths
        return None
    if values.dtype.kind not in "fib" or values.shape != (len(lists), width):
        return None
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if bool(np.isfinite(narrow).all()) else None


def _vector(value: object, width: int) -> NDArray[np.float32]:
    if value is None:
        raise UnusableError("features are missing")
    if isinstance(value, bytes):
        return _from_bytes(value, width)
    if isinstance(value, Vector):
        value = numbers(value).tolist()
    if not isinstance(value, list):
        raise UnusableError(f"features are a {type(value).__name__}; a list is needed")
    if len(value) != width:
        raise UnusableError(f"{len(value)} features; {width} are needed")
    if any(number is None for number in value):
        raise UnusableError("a feature is missing")
    wrong = [
        type(number).__name__ for number in value if not isinstance(number, bool | int | float)
    ]
    if wrong:
        raise UnusableError(f"a feature is a {wrong[0]}; numbers are needed")
    with np.errstate(over="ignore"):
        vector = np.array(value, np.float64).astype(np.float32)
    if not np.isfinite(vector).all():
        raise UnusableError("a feature is NaN, infinite or too large for 32 bits")
    return vector


def _from_bytes(value: bytes, width: int) -> NDArray[np.float32]:
    if len(value) != width * FLOAT_BYTES:
        raise UnusableError(f"{len(value)} bytes of features; {width * FLOAT_BYTES} are needed")
    vector = np.frombuffer(value, "<f4")
    if not np.isfinite(vector).all():
        raise UnusableError("a feature is NaN, infinite or too large for 32 bits")
    return vector
