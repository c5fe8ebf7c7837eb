"""The nodes' keys: text in one file, found by hash without reading them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.key_column import KeyColumn, ragged, spans, texts_at
from ringfence.connector.mirror.columns import Column, written
from ringfence.connector.mirror.integer_keys import ABSENT, Integers, Ints, integers_in

MAX_UNSORTED_KEYS = 1 << 16  # so many keys may wait outside the sorted index
MAX_KEYS_PER_LOOKUP = 20  # a table of all integers pays when one in so many keys is looked up
MAX_KEY_BYTES = 2_100  # 512 characters in UTF-8, and the type before them
#: A key's hash is the sum of its bytes times these, modulo 2^64. Text decides where hashes agree.
FACTORS = np.random.default_rng(20261116).integers(1, 2**63, MAX_KEY_BYTES, dtype=np.uint64) * 2 + 1


class Keys(Sequence[str]):
    """Typed keys by row, and rows by key.

    text uint8 and ends int64 [n]: key i is text[ends[i - 1] : ends[i]]. hashes uint64, sorted, with
    rows int32, cover the first keys; the later ones stand in a dictionary. A row that is `gone`,
    bool [n], keeps its text and is found no more; its key may come again in another row.
    """

    def __init__(
        self,
        text: Column,
        ends: Column,
        hashes: Column,
        rows: Column,
        gone: NDArray[np.bool_] | None = None,
    ) -> None:
        self.text, self.ends, self.hashes, self.rows = text, ends, hashes, rows
        self.gone = np.zeros(len(self), np.bool_)
        self.gone[: 0 if gone is None else len(gone)] = gone if gone is not None else False
        self._tail = {key: row for row, key in self._from(hashes.rows) if not self.gone[row]}
        self._integers: Integers | None = None
        self._are_integers = True  # until one is seen that is none

    @classmethod
    def empty(cls, folder: Path) -> Keys:
        """Return keys of no nodes."""
        return cls(
            Column(folder / "keys.text", np.uint8),
            Column(folder / "keys.ends", np.int64),
            Column(folder / "keys.0.hashes", np.uint64),
            Column(folder / "keys.0.rows", np.int32),
        )

    def __len__(self) -> int:
        return self.ends.rows

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return self.take(range(*row.indices(len(self))))
        at = int(row) + len(self) if row < 0 else int(row)
        if not 0 <= at < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        start = int(self.ends.array[at - 1]) if at else 0
        return self.text.array[start : int(self.ends.array[at])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return (key for _, key in self._from(0))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.find([key])[0] != ABSENT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _from(self, first: int) -> Iterator[tuple[int, str]]:
        base = int(self.ends.array[first - 1]) if first else 0
        text, start = self.text.array[base:].tobytes(), 0
        for row, end in enumerate(self.ends.array[first:].tolist(), start=first):
            yield row, text[start : end - base].decode()
            start = end - base

    def take(self, rows: Iterable[int]) -> list[str]:
        """Return the keys of some rows."""
        return texts_at(self.text.array, self.ends.array, np.fromiter(rows, np.int64))

    def column(self, rows: Ints) -> KeyColumn:
        """Return the keys of some rows; strings are made on demand."""
        return KeyColumn(self.text.array, self.ends.array, rows)

    def append(self, keys: Sequence[str]) -> Ints:
        """Add the keys that aren't here yet; return the row of each, and -1 for those that were."""
        rows = self.find(keys)
        places = np.flatnonzero(rows == ABSENT)
        rows[:] = ABSENT
        places = places[_first_places(_picked(keys, places))]
        fresh = _picked(keys, places)
        rows[places] = new = np.arange(len(self), len(self) + len(fresh))
        text, ends = _encoded(fresh)
        self.ends.append(ends + self.text.rows)
        self.text.append(text)
        self._tail.update(zip(fresh, new.tolist(), strict=True))
        self.gone = np.append(self.gone, np.zeros(len(fresh), np.bool_))
        if len(self._tail) > max(MAX_UNSORTED_KEYS, self.hashes.rows // 4):
            self.sort_in()
        return rows

    def remove(self, rows: Ints) -> None:
        """Make rows unfindable; they keep their place."""
        self.gone[rows] = True
        for row in rows.tolist():
            key = self[row]
            if self._tail.get(key) == row:
                del self._tail[key]
        self._integers = None

    def find_gone(self, keys: Sequence[str]) -> set[str]:
        """Return those of some keys that a removed row had."""
        return {self[row] for row in np.flatnonzero(self.gone).tolist()}.intersection(keys)

    def find(self, keys: Sequence[str]) -> Ints:
        """Return the row of each key, -1 where there is none."""
        rows = np.fromiter(map(self._tail.get, keys, repeat(ABSENT)), np.int64, len(keys))
        if self.hashes.rows:
            places = np.flatnonzero(rows == ABSENT)
            rows[places] = self._look_up([keys[i] for i in places.tolist()])
        return rows

    def find_integers(self, values: Ints) -> Ints:
        """Return the row of each integer key, -1 where there is none."""
        table = self._table() if len(values) * MAX_KEYS_PER_LOOKUP > len(self) else None
        if table is None:
            return self.find([f"i:{value}" for value in values.tolist()])
        return table.find(values)

    def _table(self) -> Integers | None:
        here = np.flatnonzero(~self.gone)
        stale = self._integers is None or self._integers.count != len(here)
        if stale and self._are_integers and len(here):
            values = integers_in(self.text.array, self.ends.array)
            self._are_integers = values is not None
            self._integers = None if values is None else Integers(values[here], here)
        return self._integers if len(here) else None

    def sort_in(self) -> None:
        """Sort all keys' hashes; from then on none stands in the dictionary."""
        count = len(self)
        fresh = _hash_bytes(self.text.array, self.ends.array, self.hashes.rows)
        hashes = np.concatenate([self.hashes.array, fresh])
        rows = np.concatenate([self.rows.array, np.arange(self.rows.rows, count, dtype=np.int32)])
        order = np.argsort(hashes, kind="stable")
        folder = self.text.path.parent
        self.hashes = written(folder / f"keys.{count}.hashes", hashes[order])
        self.rows = written(folder / f"keys.{count}.rows", rows[order])
        self._tail = {}

    def _look_up(self, keys: list[str]) -> Ints:
        if not keys:
            return np.empty(0, np.int64)
        text, ends = _encoded(keys)
        wanted = _hash_bytes(text, ends, 0)
        hashes = self.hashes.array
        at = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        rows = np.where(hashes[at] == wanted, self.rows.array[at].astype(np.int64), ABSENT)
        hits = np.flatnonzero(rows != ABSENT)
        wrong = hits[~self._same_text(rows[hits], text, ends, hits) | self.gone[rows[hits]]]
        for place in wrong.tolist():  # another key with the same hash, or a removed row, is first
            rows[place] = self._among_equals(keys[place], wanted[place])
        return rows

    def _same_text(
        self, rows: Ints, text: NDArray[np.uint8], ends: Ints, hits: Ints
    ) -> NDArray[np.bool_]:
        mine = spans(self.ends.array, rows)
        theirs = spans(ends, hits)
        same = mine[1] == theirs[1]
        size = np.where(same, mine[1], 0)
        left = self.text.array[ragged(mine[0], size)]
        differs = left != text[ragged(theirs[0], size)]
        wrong = np.bincount(np.repeat(np.arange(len(rows)), size), differs, minlength=len(rows))
        return np.asarray(same & (wrong == 0))

    def _among_equals(self, key: str, value: Any) -> int:
        low, high = np.searchsorted(self.hashes.array, [value, value + np.uint64(1)])
        rows = self.rows.array[low:high].tolist()
        return next((row for row in rows if not self.gone[row] and self[row] == key), ABSENT)


def _picked(keys: Sequence[str], places: Ints) -> Sequence[str]:
    return keys if len(places) == len(keys) else [keys[i] for i in places.tolist()]


def _first_places(keys: Sequence[str]) -> Ints:
    """Where each key stands first."""
    places = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    return np.sort(np.fromiter(places.values(), np.int64, len(places)))


def _encoded(keys: Sequence[str]) -> tuple[NDArray[np.uint8], Ints]:
    """The keys' text, and where each ends in it."""
    text = "".join(keys)
    raw, sizes = text.encode(), map(len, keys)
    if len(raw) != len(text):  # characters of several bytes
        sizes = map(len, map(str.encode, keys))
    return np.frombuffer(raw, np.uint8), np.cumsum(np.fromiter(sizes, np.int64, len(keys)))


def _hash_bytes(text: NDArray[np.uint8], ends: Ints, first: int) -> NDArray[np.uint64]:
    """Hashes of the keys from row `first` on."""
    if first >= len(ends):
        return np.empty(0, np.uint64)
    starts, sizes = spans(ends, np.arange(first, len(ends)))
    out = np.empty(len(starts), np.uint64)
    for at in range(0, len(starts), MAX_UNSORTED_KEYS):  # scratch memory stays small
        part = slice(at, at + MAX_UNSORTED_KEYS)
        place = ragged(np.zeros_like(sizes[part]), sizes[part])
        base = int(starts[part][0])
        values = text[base : base + len(place)].astype(np.uint64) * FACTORS[place]
        out[part] = np.add.reduceat(values, starts[part] - base)
    return out ^ (out >> np.uint64(29))
