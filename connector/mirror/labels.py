"""Labels and classes of rows as numbers, and how the keys of context nodes carry their label.

A row's label is its place in the mapping; 0 is the classified one. Keys of context nodes have their
label in front, so that equal keys of two labels stay apart and none of them can be taken for a key
of the classified label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CLASSIFIED = 0
UNKNOWN = -1


def context_key(label: int, key: str) -> str:
    """Return the key under which the mirror has a node.

    >>> context_key(0, "i:5"), context_key(2, "s:JFK")
    ('i:5', '@2:s:JFK')
    """
    return key if label == CLASSIFIED else f"@{label}:{key}"


def context_keys(label: int, keys: Sequence[str | None]) -> list[str | None]:
    """Return the mirror's keys of many nodes; None stays None."""
    if label == CLASSIFIED:
        return list(keys)
    front = f"@{label}:"
    return [None if key is None else front + key for key in keys]


def plain_key(key: str) -> str:
    """Return the typed key of a node by its key in the mirror.

    >>> plain_key("@2:s:JFK"), plain_key("i:5")
    ('s:JFK', 'i:5')
    """
    return key.split(":", 1)[1] if key.startswith("@") else key


def class_indices(known: list[str], names: Sequence[str | None]) -> NDArray[np.int32]:
    """Return places in `known`, which names that are new to it join; UNKNOWN where there is none.

    >>> known = ["a"]
    >>> class_indices(known, ["b", None, "a"]).tolist(), known
    ([1, -1, 0], ['a', 'b'])
    """
    places: dict[str | None, int] = {name: i for i, name in enumerate(known)}
    places[None] = UNKNOWN
    for name in dict.fromkeys(names):
        if name is not None and name not in places:
            places[name] = len(known)
            known.append(name)
    return np.fromiter(map(places.__getitem__, names), np.int32, len(names))
