"""Columns of relationships as columns of the nodes at their ends: means of encoded values.

A node has a mean per relation with columns and direction: over the relationships that point to it,
and, where messages flow both ways, over those that start there. Every relationship counts, parallel
ones and those from a node to itself included; a node without any has zeros, which no encoded
relationship is: the first column of each mean is 1 where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.models.encoders import TableEncoder
from ringfence.models.encoders.relation_sums import add_rows, means_of
from ringfence.models.schema import ALWAYS, TypedSchema
from ringfence.models.trees.columns import CountRule

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Bools = NDArray[np.bool_]

BYTES_PER_STEP = 16e6  # of records that are encoded at a time
IN, OUT = "in", "out"


@dataclass(frozen=True, slots=True)
class Slot:
    """The relationships of one relation at one of its ends: those that point to a node, or start.

    label: of the nodes there. other: of those at the other end.
    """

    relation: int
    label: int
    other: int
    outgoing: bool

    def rows(self, sources: Ints, targets: Ints) -> Ints:
        """Return the rows at this end of relationships."""
        return sources if self.outgoing else targets

    def others(self, sources: Ints, targets: Ints) -> Ints:
        """Return the rows at the other end."""
        return targets if self.outgoing else sources

    def front(self, schema: TypedSchema) -> str:
        """Return what the names of its columns begin with.

        >>> from ringfence.models.schema import Relation
        >>> schema = TypedSchema(("Account",), (Relation(0, "SENT", 0),))
        >>> Slot(0, 0, 0, outgoing=True).front(schema)
        'SENT Account out: '
        """
        way = OUT if self.outgoing else IN
        return f"{schema.relations[self.relation].type} {schema.labels[self.other]} {way}: "


@dataclass(frozen=True, slots=True)
class RelationEncoders:
    """The encoders of a model by relation that has columns; empty where none has any."""

    schema: TypedSchema
    tables: Mapping[int, TableEncoder] = field(default_factory=dict)

    def slots(self, label: int) -> list[Slot]:
        """Return the ends at which nodes of a label have relationships with columns."""
        slots = []
        for index in sorted(self.tables):
            relation = self.schema.relations[index]
            if relation.target == label:
                slots.append(Slot(index, label, relation.source, outgoing=False))
            if relation.source == label and relation.undirected:
                slots.append(Slot(index, label, relation.target, outgoing=True))
        return slots

    def width(self, label: int) -> int:
        """Return how many columns a label gets."""
        return sum(self.tables[slot.relation].width for slot in self.slots(label))

    def names(self, label: int) -> list[str]:
        """Return the names of these columns."""
        return [
            f"{slot.front(self.schema)}mean {name}"
            for slot in self.slots(label)
            for name in self.tables[slot.relation].names
        ]

    def counted(self, label: int, rule: CountRule) -> list[Slot]:
        """Return the ends at which relationships are counted: `rule` asks for the other end."""
        return [slot for slot in self.slots(label) if rule.counts_label(slot.other)]

    def count_names(self, label: int, rule: CountRule) -> list[str]:
        """Return the names of the counts of a label's relationships."""
        return [f"{slot.front(self.schema)}count" for slot in self.counted(label, rule)]


@dataclass(frozen=True, slots=True)
class Without:
    """Relationships that a question takes away, and columns that it blanks at one node.

    gone: (relation, rows of source and target [m]) -> which are taken away. blank: by relation, the
    columns without which the relationships of `node` are encoded there.
    """

    node: int
    gone: Callable[[int, Ints, Ints], Bools]
    blank: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class RelationMeans:
    """Means at the nodes of a mirror as it is now.

    keeps: encoded relationships stay in memory, where many rows are asked for one after the other.
    targets: by relation, other targets of its entries [entries], -1 where an entry is taken away;
    None: those of the mirror. encoded: by relation, what was kept.
    """

    mirror: Mirror
    encoders: RelationEncoders
    keeps: bool = False
    targets: Mapping[int, Ints] | None = None
    encoded: dict[int, Float32s] = field(default_factory=dict)

    def at(
        self, label: int, rows: Ints, seen: Bools | None = None, without: Without | None = None
    ) -> Float32s:
        """Return the means of some rows of a label [n, width].

        seen bool [nodes]: the nodes that are there; relationships of others do not count.
        """
        parts = [np.empty((len(rows), 0), np.float32)]
        for slot in self.encoders.slots(label):
            places, at = self._places(slot, rows, seen, without)
            sums = np.zeros((len(rows), self.encoders.tables[slot.relation].width), np.int64)
            blank = {} if without is None else without.blank
            for start, encoded in self._blocks(slot.relation, places):
                part = slice(start, start + len(encoded))
                if slot.relation in blank and without is not None:
                    mine = np.flatnonzero(rows[at[part]] == without.node)
                    names = blank[slot.relation]
                    encoded[mine] = self.encode(slot.relation, places[part][mine], names)
                add_rows(sums, at[part], encoded)
            parts.append(means_of(sums))
        return np.concatenate(parts, axis=1)

    def counts(
        self,
        label: int,
        rows: Ints,
        rule: CountRule,
        seen: Bools | None = None,
        without: Without | None = None,
    ) -> Float32s:
        """Return how many relationships rows have per relation and direction that count [n, k].

        Those to nodes that the rule has as later than the row itself do not count.
        """
        slots, times = self.encoders.counted(label, rule), rule.times
        counts = np.zeros((len(rows), len(slots)), np.float32)
        for number, slot in enumerate(slots):
            places, at = self._places(slot, rows, seen, without)
            if times is not None:
                born = times[rows[at]]
                others = slot.others(*self.mirror.related[slot.relation].ends(places))
                at = at[(times[others] <= born) | (born == ALWAYS)]
            counts[:, number] = np.bincount(at, minlength=len(rows))
        return counts

    def encode(self, relation: int, places: Ints, blank: tuple[str, ...] = ()) -> Float32s:
        """Return encoded relationships by their places [m, width], without some columns."""
        records = self.mirror.related[relation].records
        columns = records.columns(places) | {name: [None] * len(places) for name in blank}
        return self.encoders.tables[relation].transform(columns, len(places))

    def _places(
        self, slot: Slot, rows: Ints, seen: Bools | None, without: Without | None
    ) -> tuple[Ints, Ints]:
        """The relationships at some rows, and the place of each one's row among these."""
        table = self.mirror.related[slot.relation]
        places = np.flatnonzero(table.live)
        sources, targets = table.ends(places)
        if self.targets is not None:
            targets = self.targets[slot.relation][places]
            places, sources, targets = (ends[targets >= 0] for ends in (places, sources, targets))
        at = np.full(self.mirror.size, -1, np.int64)
        at[rows] = np.arange(len(rows))
        here = at[slot.rows(sources, targets)]
        taken = here >= 0
        if seen is not None:
            taken &= seen[sources] & seen[targets]
        if without is not None:
            taken &= ~without.gone(slot.relation, sources, targets)
        return places[taken], here[taken]

    def _blocks(self, relation: int, places: Ints) -> Iterator[tuple[int, Float32s]]:
        """Encoded relationships in blocks, each with the number of its first one."""
        if self.keeps:
            yield 0, self._all(relation)[places]
            return
        step = rows_per_step(self.mirror, relation)
        for start in range(0, len(places), step):
            yield start, self.encode(relation, places[start : start + step])

    def _all(self, relation: int) -> Float32s:
        """All relationships by place, encoded once; rows of those that are gone are empty."""
        if relation not in self.encoded:
            table = self.mirror.related[relation]
            width = self.encoders.tables[relation].width
            encoded = np.zeros((len(table.live), width), np.float32)
            live, step = np.flatnonzero(table.live), rows_per_step(self.mirror, relation)
            for start in range(0, len(live), step):
                part = live[start : start + step]
                encoded[part] = self.encode(relation, part)
            self.encoded[relation] = encoded
        return self.encoded[relation]


def rows_per_step(mirror: Mirror, relation: int) -> int:
    """Return how many relationships are encoded at a time."""
    return max(1, int(BYTES_PER_STEP / max(mirror.related[relation].records.mean_bytes, 1)))


def update_sums(means: RelationMeans, label: int, sums: Ints, places: Ints, version: int) -> Ints:
    """Bring the sums of a label's nodes from a version of the mirror to what it is now.

    Args:
        means: of the mirror.
        label: whose nodes have the sums.
        sums: by node of the label [n, width], changed in place; zeros at version -1.
        places: of each row among those of its label.
        version: that the sums are of.

    Returns:
        The rows whose sums changed.
    """
    touched, start = [np.empty(0, np.int64)], 0
    for slot in means.encoders.slots(label):
        table = means.mirror.related[slot.relation]
        stop = start + means.encoders.tables[slot.relation].width
        for sign, changed in zip((1, -1), table.changes_since(version), strict=True):
            step = rows_per_step(means.mirror, slot.relation)
            for first in range(0, len(changed), step):
                part = changed[first : first + step]
                rows = slot.rows(*table.ends(part))
                encoded = means.encode(slot.relation, part)
                add_rows(sums[:, start:stop], places[rows], encoded, sign)
                touched.append(rows)
        start = stop
    return np.unique(np.concatenate(touched))


def means_by_slot(encoders: RelationEncoders, label: int, sums: Ints) -> Float32s:
    """Return the means of sums [n, width]: of each relation and direction by its own count."""
    parts, start = [np.empty((len(sums), 0), np.float32)], 0
    for slot in encoders.slots(label):
        stop = start + encoders.tables[slot.relation].width
        parts.append(means_of(sums[:, start:stop]))
        start = stop
    return np.concatenate(parts, axis=1)


def rows_touched_since(mirror: Mirror, version: int) -> Ints:
    """Return the rows whose relationships with columns changed after a version."""
    touched = [np.empty(0, np.int64)]
    for table in mirror.related.values():
        for places in table.changes_since(version):
            touched += table.ends(places)
    return np.unique(np.concatenate(touched))


def facts_of(encoders: RelationEncoders) -> list[dict[str, Any]]:
    """Return what a manifest holds of the encoders."""
    return [
        {"relation": index, "table": table.to_json()}
        for index, table in sorted(encoders.tables.items())
    ]
