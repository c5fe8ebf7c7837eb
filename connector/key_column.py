"""Keys in one long text: strings are made on demand, and keys are sorted without objects.

A million keys as Python objects take 65 MB, and the order of as many another 40; here a key is
eight bytes (its row) until its block is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_SORTED_BYTES = 64  # of the longest key; keys that are longer are sorted as texts
ROWS_AT_ONCE = 1 << 16  # scratch memory stays small
WORD = 8

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

__all__ = ["KeyColumn", "key_order", "keys_at", "ragged", "spans", "texts_at"]


class KeyColumn(Sequence[str]):
    """The keys of some rows: key i is text[ends[rows[i] - 1] : ends[rows[i]]], in UTF-8."""

    __slots__ = ("_order", "ends", "rows", "text")

    def __init__(self, text: Bytes, ends: Ints, rows: Ints) -> None:
        self.text, self.ends, self.rows = text, ends, rows
        self._order: Ints | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return texts_at(self.text, self.ends, self.rows[place])
        return texts_at(self.text, self.ends, self.rows[[place]])[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield from self[start : start + ROWS_AT_ONCE]

    def take(self, places: Ints) -> list[str]:
        """Return the keys at some places."""
        return texts_at(self.text, self.ends, self.rows[places])

    def order(self) -> Ints:
        """Return the places in the order of their keys; sorted once."""
        if self._order is None:
            self._order = _order_of_words(self.text, self.ends, self.rows)
        if self._order is None:
            self._order = _order_of_texts(self)
        return self._order


def keys_at(keys: Sequence[str], places: Ints) -> list[str]:
    """Return some of the keys as texts.

    >>> keys_at(["i:1", "i:2"], np.array([1]))
    ['i:2']
    """
    if isinstance(keys, KeyColumn):
        return keys.take(places)
    return [keys[place] for place in places.tolist()]


def key_order(keys: Sequence[str]) -> Ints:
    """Return the places in the order of their keys, which is that of their code points.

    >>> key_order(["i:20", "i:3", "i:1"]).tolist()
    [2, 0, 1]
    """
    return keys.order() if isinstance(keys, KeyColumn) else _order_of_texts(keys)


def texts_at(text: Bytes, ends: Ints, rows: Ints) -> list[str]:
    """Return the texts of some rows.

    >>> texts_at(np.frombuffer(b"i:7i:12", np.uint8), np.array([3, 7]), np.array([1, 0, 1]))
    ['i:12', 'i:7', 'i:12']
    """
    texts: list[str] = []
    for start in range(0, len(rows), ROWS_AT_ONCE):
        starts, sizes = spans(ends, rows[start : start + ROWS_AT_ONCE])
        raw = text[ragged(starts, sizes)].tobytes()
        stops = np.cumsum(sizes).tolist()
        if raw.isascii():  # one character is one byte: cut after decoding
            whole = raw.decode()
            texts += [whole[a:b] for a, b in zip([0, *stops], stops, strict=False)]
        else:
            texts += [raw[a:b].decode() for a, b in zip([0, *stops], stops, strict=False)]
    return texts


def spans(ends: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return start and length of each row's text."""
    starts = np.where(rows > 0, ends[rows - 1], 0)
    return starts, ends[rows] - starts


def ragged(starts: Ints, sizes: Ints) -> Ints:
    """Return the positions start .. start + size of each, one after the other."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def _order_of_texts(keys: Sequence[str]) -> Ints:
    texts = list(keys)
    order = sorted(range(len(texts)), key=texts.__getitem__)
    return np.fromiter(order, np.int64, len(order))


def _order_of_words(text: Bytes, ends: Ints, rows: Ints) -> Ints | None:
    """Sort by the bytes as 64-bit words; None if keys are too long or hold a NUL.

    UTF-8 sorts as its code points do. A shorter key is padded with NULs and so sorts before a
    longer one that begins with it; no key may contain a NUL itself.
    """
    parts = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(rows), ROWS_AT_ONCE)]
    longest = max([1, *(int(spans(ends, rows[part])[1].max()) for part in parts)])
    if longest > MAX_SORTED_BYTES:
        return None
    width = -(-longest // WORD)
    words = np.zeros((len(rows), width), np.uint64)
    for part in parts:
        starts, some = spans(ends, rows[part])
        key_bytes = text[ragged(starts, some)]
        if not key_bytes.all():
            return None
        padded = words[part].view(np.uint8).reshape(-1)
        padded[ragged(np.arange(len(some)) * width * WORD, some)] = key_bytes
    if sys.byteorder == "little":
        words.byteswap(inplace=True)
    return np.lexsort(words.T[::-1])
