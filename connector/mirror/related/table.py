"""The relationships of one relation one by one, with the properties that are columns.

The adjacency has each pair of ends once. Where a relation has columns every relationship counts,
parallel ones and those from a node to itself included: each has an entry with the number of its
element id, the rows of its ends and a record of its values. Files only grow: an entry that changed
or was removed is followed by another one of the same number, and the last one counts. A removed one
has the complement of its source's row there.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.columns import Column
from ringfence.connector.mirror.raw_table import RawTable
from ringfence.connector.mirror.table import steps

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MIN_LATE_TO_SORT = 1 << 16  # numbers that are looked up in a dictionary until they are sorted in
MAX_ID_DIGITS = 18  # of a number that 64 bits hold for sure
FILES = ("numbers", "sources", "targets", "versions")


def number_of(element_id: str) -> int:
    """Return the number of a relationship's element id: its last part, or a hash of another form.

    >>> number_of("5:4f2c:17"), number_of("another form") < 0
    (17, True)
    """
    tail = element_id.rpartition(":")[2]
    if tail.isascii() and tail.isdigit() and len(tail) <= MAX_ID_DIGITS:
        return int(tail)
    digest = blake2b(element_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return -1 - (int.from_bytes(digest, "big") >> 1)


class RelationTable:
    """Entries by place: numbers, sources, targets and versions [n], and a record of each.

    `live` bool [n]: the entries that are relationships of the graph. `waiting` has by number the
    relationships whose ends are not here yet: keys of source and target, record.
    """

    def __init__(self, records: RawTable, files: dict[str, Column]) -> None:
        self.records = records
        self.numbers, self.sources = files["numbers"], files["sources"]
        self.targets, self.versions = files["targets"], files["versions"]
        self.waiting: dict[int, tuple[str, str, bytes]] = {}
        self._swept: Bools | None = None
        self._late: dict[int, int] = {}
        self.live: Bools
        self._open()

    @classmethod
    def empty(cls, folder: Path, relation: int, names: Sequence[str]) -> RelationTable:
        """Return a table without entries; `relation` tells the files of relations apart."""

        def column(name: str, kind: Any) -> Column:
            return Column(folder / f"related.{relation}.{name}", kind)

        records = RawTable(names, column("text", np.uint8), column("ends", np.int64))
        return cls(
            records,
            {
                "numbers": column("numbers", np.int64), "sources": column("sources", np.int32),
                "targets": column("targets", np.int32), "versions": column("versions", np.int64),
            },
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The properties that a record holds."""
        return self.records.names

    @property
    def count(self) -> int:
        """How many relationships there are between nodes that are here."""
        return int(np.count_nonzero(self.live))

    @property
    def dead(self) -> int:
        """How many entries are no relationship any more."""
        return len(self.live) - self.count

    def files(self) -> dict[str, Column]:
        """Return its columns by name."""
        return {name: getattr(self, name) for name in FILES} | self.records.files()

    def find(self, numbers: Ints) -> Ints:
        """Return the entry of each number; -1 where no relationship has it."""
        at = np.minimum(np.searchsorted(self._sorted, numbers), max(len(self._sorted) - 1, 0))
        places = np.full(len(numbers), -1, np.int64)
        if len(self._sorted):
            known = self._sorted[at] == numbers
            places[known] = self._places[at[known]]
        if self._late:
            for place, number in enumerate(numbers.tolist()):
                places[place] = self._late.get(number, places[place])
        return places

    def put(
        self, numbers: Ints, sources: Ints, targets: Ints, texts: Sequence[bytes], version: int
    ) -> Ints:
        """Write relationships as they are now; return other ends that some had before [2, m].

        Those that are here with the same ends and values change nothing.
        """
        last = len(numbers) - 1 - np.unique(numbers[::-1], return_index=True)[1]
        chosen = np.sort(last)  # a number may stand twice in one block
        places = self.find(numbers[chosen])
        differs = self._differs(places, sources[chosen], targets[chosen], texts, chosen)
        if self._swept is not None:
            self._swept[places[places >= 0]] = True
        for number in numbers[chosen].tolist() if self.waiting else ():
            self.waiting.pop(number, None)
        chosen, before = chosen[differs], places[differs]
        known = before >= 0
        ends = np.stack([self.sources.array[before[known]], self.targets.array[before[known]]])
        moved = (ends[0] != sources[chosen][known]) | (ends[1] != targets[chosen][known])
        self.live[before[known]] = False
        self._append(
            numbers[chosen], sources[chosen], targets[chosen],
            [texts[at] for at in chosen.tolist()], version, live=True,
        )  # fmt: skip
        return ends[:, moved].astype(np.int64)

    def remove(self, places: Ints, version: int) -> Ints:
        """Remove the relationships at some places; return their ends [2, m]."""
        places = places[self.live[places]]
        numbers = self.numbers.array[places]
        ends = np.stack([self.sources.array[places], self.targets.array[places]]).astype(np.int64)
        self.live[places] = False
        nothing = [b""] * len(places)
        self._append(numbers, ~ends[0], ends[1], nothing, version, live=False)
        return ends

    def places_between(self, sources: Ints, targets: Ints) -> Ints:
        """Return the entries of relationships that join any of these pairs of rows."""
        places = self.places_from(sources)
        pairs = _pairs(self.sources.array[places], self.targets.array[places])
        return places[np.isin(pairs, _pairs(sources, targets))]

    def places_from(self, rows: Ints) -> Ints:
        """Return the entries of relationships that start at some rows."""
        if not len(rows):
            return np.empty(0, np.int64)
        places = np.flatnonzero(self.live)
        starts = self.sources.array[places]
        marks = np.zeros(max(int(starts.max(initial=0)), int(rows.max())) + 1, np.bool_)
        marks[rows] = True  # a look-up per entry: np.isin would sort them all
        return np.asarray(places[marks[starts]], np.int64)

    def without_any(self, ends: Ints) -> Ints:
        """Return the pairs of rows [2, m] that no relationship joins any more."""
        here = self.places_between(*ends)
        left = _pairs(self.sources.array[here], self.targets.array[here])
        return ends[:, ~np.isin(_pairs(*ends), left)]

    def ends(self, places: Ints) -> tuple[Ints, Ints]:
        """Return rows of source and target of some entries."""
        sources = self.sources.array[places].astype(np.int64)
        return np.where(sources < 0, ~sources, sources), self.targets.array[places].astype(np.int64)

    def changes_since(self, version: int) -> tuple[Ints, Ints]:
        """Return the entries that count now and did not at a version, and the other way round."""
        first = int(np.searchsorted(self.versions.array, version, side="right"))
        came = first + np.flatnonzero(self.live[first:])
        numbers = self.numbers.array
        before = np.flatnonzero(np.isin(numbers[:first], numbers[first:]))
        order = before[np.argsort(numbers[before], kind="stable")]
        last = np.append(numbers[order][1:] != numbers[order][:-1], True)[: len(order)]
        gone = order[last]
        return came, np.sort(gone[self.sources.array[gone] >= 0])

    def begin_sweep(self) -> None:
        """From now on note which relationships are read again; all of them are to be."""
        self.waiting.clear()
        self._swept = np.zeros(len(self.live), np.bool_)

    def end_sweep(self, version: int) -> None:
        """Remove the relationships that were not read again."""
        swept, self._swept = self._swept, None
        if swept is not None:
            self.remove(np.flatnonzero(self.live & ~swept), version)

    def rewrite(self, folder: Path, relation: int, rows: Ints) -> RelationTable:
        """Return a table of what counts alone; `rows` [n] are the new numbers of the rows."""
        fresh = RelationTable.empty(folder, relation, self.names)
        kept = np.flatnonzero(self.live)
        for start, stop in steps(len(kept)):
            part = kept[start:stop]
            fresh.numbers.append(self.numbers.array[part])
            fresh.sources.append(rows[self.sources.array[part]])
            fresh.targets.append(rows[self.targets.array[part]])
            fresh.versions.append(self.versions.array[part])
            fresh.records.append_texts(self.records.texts(part))
        fresh.live = np.ones(len(kept), np.bool_)
        fresh.waiting = self.waiting
        fresh._sort()
        return fresh

    def _differs(
        self, places: Ints, sources: Ints, targets: Ints, texts: Sequence[bytes], chosen: Ints
    ) -> Bools:
        differs = np.ones(len(places), np.bool_)
        known = np.flatnonzero(places >= 0)
        at = places[known]
        same = (self.sources.array[at] == sources[known]) & (
            self.targets.array[at] == targets[known]
        )
        read = [texts[place] for place in chosen[known].tolist()]
        pairs = zip(self.records.texts(at), read, strict=True)
        differs[known] = ~(same & np.fromiter((a == b for a, b in pairs), np.bool_, len(read)))
        return differs

    def _append(
        self, numbers: Ints, sources: Ints, targets: Ints, texts: list[bytes], version: int,
        *, live: bool,
    ) -> None:  # fmt: skip
        first, count = len(self.live), len(numbers)
        if not count:
            return
        self.numbers.append(numbers)
        self.sources.append(sources)
        self.targets.append(targets)
        self.versions.append(np.full(count, version, np.int64))
        self.records.append_texts(texts)
        self.live = np.append(self.live, np.full(count, live))
        if self._swept is not None:
            self._swept = np.append(self._swept, np.full(count, live))
        places = range(first, first + count) if live else [-1] * count
        self._late.update(zip(numbers.tolist(), places, strict=True))
        if len(self._late) > max(MIN_LATE_TO_SORT, len(self._sorted) // 4):
            self._sort()

    def _open(self) -> None:
        """Sort the numbers once, for what counts and for looking it up.

        The last entry of each number counts, unless it says that the relationship is gone.
        """
        numbers = self.numbers.array
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        last = np.append(ordered[1:] != ordered[:-1], True)[: len(order)]
        last &= self.sources.array[order] >= 0
        self._sorted, self._places = ordered[last], order[last]
        self.live = np.zeros(len(numbers), np.bool_)
        self.live[self._places] = True

    def _sort(self) -> None:
        """Sort in what came since the table was opened or sorted."""
        places = np.flatnonzero(self.live)
        order = np.argsort(self.numbers.array[places], kind="stable")
        self._sorted, self._places = self.numbers.array[places][order], places[order]
        self._late = {}


def _pairs(sources: NDArray[np.integer], targets: NDArray[np.integer]) -> Ints:
    """Two rows as one number; both are below 2^28."""
    return np.asarray(sources.astype(np.int64) << 32 | targets.astype(np.int64))
