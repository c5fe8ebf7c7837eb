"""Random worlds whose relationships have properties: parallels, loops, late and odd values.

A `RelatedWorld` is a world of `typed_worlds` and beside it each relationship by its number.
"""

import random
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from ringfence.connector.keys import encode_key
from ringfence.connector.mapping import ColumnMapping
from ringfence.connector.mirror import RelatedBlock, RelationshipBlock, context_key
from ringfence.connector.mirror.raw_table import encode_columns
from ringfence.connector.neo4j.read.values import plain_column
from tests.typed_worlds import MAKERS, World, names, worlds

MAX_PARALLELS = 3


@dataclass(slots=True)
class RelatedChange:
    """A change of the world, and beside it relationships by number: come or changed, and gone."""

    world: object
    written: list = field(default_factory=list)
    gone: list = field(default_factory=list)


@dataclass(slots=True)
class RelatedWorld:
    """`kinds` by relation, column -> kind; `records` number -> relation, source, target, values."""

    world: World
    kinds: dict
    records: dict = field(default_factory=dict)
    drawn: int = 0

    @property
    def mapping(self):
        """Names in the graph."""
        return self.world.mapping

    @property
    def rng(self) -> random.Random:
        """What decides."""
        return self.world.rng

    def step(self, *arguments, known=False):
        """A step of the world; its relationships come once or several times, others change."""
        change = self.world.step(*arguments, known=known)
        gone = [n for n, (*ends, _) in self.records.items()
                if tuple(ends) not in self.world.relations - {*change.parted}]  # fmt: skip
        loops = [
            (at, key, key)
            for at, one in enumerate(self.mapping.relations)
            for label, key in change.added[:1]
            if at in self.kinds and one.source == one.target == label
        ]
        new = sorted({*change.joined, *loops}, key=repr)
        self.world.relations |= set(loops)
        change = replace(change, joined=[ends for ends in new if ends[0] not in self.kinds])
        old = [n for n in self.records if n not in gone]
        written = [self._write(*ends) for ends in new if ends[0] in self.kinds
                   for _ in range(self.rng.randint(1, MAX_PARALLELS))]  # fmt: skip
        for n in self.rng.sample(old, min(len(old), 3)):
            at, a, b, _ = self.records[n]
            self.records[n] = (at, a, b, self._values(at))
            written.append(n)
        gone += self.rng.sample([n for n in old if n not in written], min(1, len(old) // 4))
        for n in gone:
            self._delete(n)
        return RelatedChange(change, written, gone)

    def everything(self, change):
        """A change that brings all there is to an empty mirror, in another order."""
        world = replace(
            change,
            added=list(reversed(self.world.nodes)),
            joined=[e for e in sorted(self.world.relations, key=repr) if e[0] not in self.kinds],
        )
        return RelatedChange(world, list(reversed(self.records)))

    def _write(self, at, a, b):
        self.drawn += 1
        self.records[self.drawn] = (at, a, b, self._values(at))
        return self.drawn

    def _delete(self, number):
        *ends, _ = self.records.pop(number)
        if not any([*other] == ends for *other, _ in self.records.values()):
            self.world.relations.discard(tuple(ends))

    def _values(self, at):
        return [self.world._value(kind) for kind in self.kinds[at].values()]


@st.composite
def related_worlds(draw):
    """A world in which some relations have columns of any kind and any name."""
    world = draw(worlds(columns=2, cut=False))
    kind = st.dictionaries(names, st.sampled_from(sorted(MAKERS)), max_size=3)
    drawn = [draw(kind) for _ in world.mapping.relations]
    relations = tuple(
        replace(one, columns=tuple(ColumnMapping(name, kinds[name]) for name in kinds))
        for one, kinds in zip(world.mapping.relations, drawn, strict=True)
    )
    world.mapping = replace(world.mapping, relations=relations)
    return RelatedWorld(world, {at: kinds for at, kinds in enumerate(drawn) if kinds})


def take_in_related(typed, related, change):
    """Bring relationships to a mirror that has its nodes: as a read does, then as a slice does."""
    for number in change.written:
        if number in related.records:
            at, a, b, values = related.records[number]
            one = related.mapping.relations[at]
            ends = (
                [context_key(label, encode_key(key))]
                for label, key in ((one.source, a), (one.target, b))
            )
            texts = encode_columns([plain_column([value]) for value in values], 1)
            typed.add_block(RelationshipBlock(at, *ends, numbers=np.array([number]), texts=texts))
    typed.add_relationships([])
    nothing = np.empty(0, np.int64)
    for at in typed.related:
        block = RelatedBlock(nothing, nothing, nothing, [])
        gone = np.array(change.gone, np.int64)
        typed.related.exchange(at, block, gone, typed.adjacency, typed.version)
