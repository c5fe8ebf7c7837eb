"""The relation tables of a mirror, kept in step with its adjacency.

The adjacency has a pair of ends as long as any relationship joins it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.blocks import RelatedBlock, RelationshipBlock
from ringfence.connector.mirror.related.table import RelationTable

Ints = NDArray[np.int64]
ABSENT = -1


class Related(dict[int, RelationTable]):
    """By relation that has columns, the table of its relationships; empty where none has any."""

    def count(self, kind: int, otherwise: int) -> int:
        """How many relationships of a relation are here; without columns they aren't known."""
        return self[kind].count if kind in self else otherwise

    def take(
        self, block: RelationshipBlock, ends: Ints, adjacency: Adjacency, version: int
    ) -> None:
        """Write the relationships of a block; `ends` [2, m] are rows, `ABSENT` where not here.

        One whose end is not here waits. A number that had other ends before belonged to another
        relationship, which is gone.
        """
        if block.numbers is None:
            raise TypeError("a relation with columns takes numbers and records")
        table, here = self[block.type_index], (ends != ABSENT).all(axis=0)
        elsewhere = table.find(block.numbers[~here])
        gone = table.remove(elsewhere[elsewhere != ABSENT], version)
        texts = [block.texts[at] for at in np.flatnonzero(here).tolist()]
        source, target = ends[:, here]
        moved = table.put(block.numbers[here], source, target, texts, version)
        for at, names in _unplaced(block, ~here):
            table.waiting[int(block.numbers[at])] = (*names, block.texts[at])
        self._drop(block.type_index, np.concatenate([gone, moved], axis=1), adjacency, version)

    def exchange(
        self, kind: int, block: RelatedBlock, gone: Ints, adjacency: Adjacency, version: int
    ) -> int:
        """Write some relationships of a relation and remove those of numbers `gone`.

        Return by how many there are more.
        """
        table = self[kind]
        before, places = table.count, table.find(gone)
        ends = table.remove(places[places != ABSENT], version)
        moved = table.put(block.numbers, block.sources, block.targets, block.texts, version)
        adjacency.add(block.sources, block.targets, kind, version)
        self._drop(kind, np.concatenate([ends, moved], axis=1), adjacency, version)
        adjacency.settle(version)
        return table.count - before

    def remove_between(self, kind: int, source: Ints, target: Ints, version: int) -> int:
        """Remove all relationships of a relation between pairs of rows; return how many."""
        table = self[kind]
        removed = table.remove(table.places_between(source, target), version)
        return int(removed.shape[1])

    def forget_waiting(self, names: Collection[str]) -> None:
        """Drop what waits for nodes with some keys, which are gone."""
        for table in self.values():
            waiting = table.waiting.items()
            table.waiting = {
                n: end for n, end in waiting if end[0] not in names and end[1] not in names
            }

    def take_waiting(self) -> Iterator[RelationshipBlock]:
        """Yield what waits, as blocks; nothing waits any more."""
        for kind, table in self.items():
            waiting, table.waiting = table.waiting, {}
            if waiting:
                sources, targets, texts = zip(*waiting.values(), strict=True)
                numbers = np.fromiter(waiting, np.int64, len(waiting))
                yield RelationshipBlock(kind, sources, targets, numbers=numbers, texts=texts)

    def begin_sweep(self) -> None:
        """All relationships are to be read again: note which ones are."""
        for table in self.values():
            table.begin_sweep()

    def end_sweep(self, version: int) -> dict[int, int]:
        """Remove those that were not read again; return by relation how many there are."""
        for table in self.values():
            table.end_sweep(version)
        return {kind: table.count for kind, table in self.items()}

    def _drop(self, kind: int, ends: Ints, adjacency: Adjacency, version: int) -> None:
        """Take pairs of ends out of the adjacency that no relationship joins any more."""
        if ends.size:
            source, target = self[kind].without_any(ends)
            adjacency.remove(source, target, np.full(len(source), kind), version)


def _unplaced(
    block: RelationshipBlock, where: NDArray[np.bool_]
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Places of relationships with the keys of their ends, where both can be used."""
    source = np.repeat(np.arange(len(block.sources)), block.target_counts)
    for at in np.flatnonzero(where).tolist():
        names = block.ends(int(source[at]), at)
        if names is not None:
            yield at, names
