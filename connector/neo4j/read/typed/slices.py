"""A rolling slice: some rows of the mirror are compared with the graph in every run.

Changed properties of the classified label and of large context labels show in no count, nor do
deletions that new relationships make up for. So each run reads some rows again, in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.typed import TypedMirror
from ringfence.connector.neo4j.read.typed.repair import keys_of

if TYPE_CHECKING:
    from ringfence.connector.neo4j.read.typed.reader import TypedReader

Ints = NDArray[np.int64]
Ends = tuple[int, int, int]
"""A relationship by the rows of its source and target, and its relation."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Rows that are gone from the graph, and relationships that only one of the two has."""

    gone: frozenset[int] = frozenset()
    missed: frozenset[Ends] = frozenset()
    deleted: frozenset[Ends] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.gone or self.missed or self.deleted)

    def __and__(self, other: RowDifference) -> RowDifference:
        """What both looks show."""
        return RowDifference(
            self.gone & other.gone, self.missed & other.missed, self.deleted & other.deleted
        )


def update_rows(reader: TypedReader, typed: TypedMirror, rows: Ints) -> tuple[Ints, Ints]:
    """Read the properties of some rows again; return the rows that had others, and those gone."""
    changed, seen = [np.empty(0, np.int64)], np.zeros(typed.size, np.bool_)
    for label in range(len(reader.mapping.nodes)):
        for block in reader.label(label).read_by_key(_keys(typed, rows, label)):
            changed.append(typed.update_nodes(block))
            found = typed.base.find(block.keys)
            seen[found[found >= 0]] = True
    return np.concatenate(changed), rows[~seen[rows]]


def compare_relations(
    reader: TypedReader, typed: TypedMirror, rows: Ints
) -> tuple[frozenset[Ends], frozenset[Ends]]:
    """Return the relationships that start at some rows in the graph alone, in the mirror alone."""
    now: set[Ends] = set()
    for index, relation in enumerate(reader.mapping.relations):
        keys = _keys(typed, rows, relation.source)
        for block in reader.relation(index).read_of(keys, from_target=False):
            sources, targets = (typed.base.rows_of(end) for end in (block.sources, block.targets))
            here = (sources >= 0) & (targets >= 0)
            pairs = zip(sources[here].tolist(), targets[here].tolist(), strict=True)
            now.update((a, b, index) for a, b in pairs)
    source, target, kind = typed.base.adjacency.starting_at(rows)
    held = set(zip(source.tolist(), target.tolist(), kind.tolist(), strict=True))
    return frozenset(now - held), frozenset(held - now)


def _keys(typed: TypedMirror, rows: Ints, label: int) -> list[str]:
    return keys_of(typed, rows[typed.labels[rows] == label])
