"""Random graphs of several labels that grow, lose and change: hostile names, every kind of value.

A world is drawn by hypothesis (names, kinds, relations) and lives by its own generator; what a step
changed is a `Change`, which a test brings to a mirror or to a real Neo4j.
"""

import datetime as dt
import math
import random
from dataclasses import dataclass, field

from hypothesis import strategies as st
from neo4j.spatial import CartesianPoint, WGS84Point
from neo4j.time import Date, DateTime, Duration, Time

from ringfence.connector.mapping import (
    ColumnMapping,
    GraphMapping,
    NodeMapping,
    RelationMapping,
)

CLASSES = ("low", "high", "`) DETACH DELETE (n", "")
TEXTS = ("a", "b", 'it\'s "x"', "", "ß" * 40, "\u2028", "𝒳", "' OR 1=1 --", "\\u0060")
UTC = dt.UTC
MAKERS = {
    "number": lambda r: r.choice([r.gauss(0, 1), r.gauss(0, 1), 1e300, -0.0, math.inf, math.nan]),
    "integer": lambda r: r.choice([r.randint(-9, 9), r.randint(-9, 9), 2**62, -(2**63)]),
    "boolean": lambda r: r.random() < 0.5,
    "category": lambda r: r.choice(TEXTS),
    "date": lambda r: Date(r.choice([1, 2025, 2026, 9999]), r.randint(1, 12), r.randint(1, 28)),
    "datetime": lambda r: DateTime(2026, r.randint(1, 12), 3, r.randint(0, 23), 5, 7.25,
                                   tzinfo=r.choice([None, UTC])),
    "time": lambda r: Time(r.randint(0, 23), r.randint(0, 59), 3.5),
    "duration": lambda r: Duration(months=r.randint(-3, 3), days=r.randint(0, 9), seconds=5),
    "point": lambda r: r.choice([WGS84Point((r.random(), r.random())), CartesianPoint((1.0, 2.0))]),
    "text": lambda r: " ".join(r.choice(TEXTS) for _ in range(r.randint(0, 6))),
    "numbers": lambda r: [r.gauss(0, 1) for _ in range(r.randint(0, 5))],
    "texts": lambda r: [r.choice(TEXTS) for _ in range(r.randint(0, 4))],
    "vector": lambda r: [r.gauss(0, 1) for _ in range(3)],
}  # fmt: skip
WRONG_SHARE, MISSING_SHARE = 0.03, 0.15

names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=6
)


@dataclass(frozen=True, slots=True)
class Change:
    """Nodes as (label, key), relationships as (relation, source key, target key)."""

    added: list = field(default_factory=list)
    altered: list = field(default_factory=list)
    removed: list = field(default_factory=list)
    joined: list = field(default_factory=list)
    parted: list = field(default_factory=list)


@dataclass(slots=True)
class World:
    """What the graph is: columns by (label, key), classes by key, relationships."""

    mapping: GraphMapping
    kinds: list[dict[str, str]]
    rng: random.Random
    nodes: dict = field(default_factory=dict)
    classes: dict = field(default_factory=dict)
    relations: set = field(default_factory=set)
    drawn: int = 0

    def step(self, arrivals, late, deletions, changes, known=False) -> Change:
        """Nodes come with relationships, old ones are joined, deleted and written anew."""
        rng, before = self.rng, sorted(self.nodes, key=repr)
        parted = self._part(deletions // 2)
        removed = rng.sample(before, min(deletions, max(0, len(before) - 4)))
        for node in removed:
            self._remove(node)
        old = [node for node in before if node in self.nodes]
        altered = rng.sample(old, min(changes, len(old)))
        for node in altered:
            self.nodes[node] = self._columns(node[0])
        added = [self._arrive(known) for _ in range(arrivals)]
        joined = [
            one for node in added for _ in range(rng.randint(0, 3)) if (one := self._join(node))
        ]
        joined += [one for _ in range(late) if old and (one := self._join(rng.choice(old)))]
        return Change(added, altered, removed, sorted(set(joined), key=repr), parted)

    def keys(self, label):
        """Keys of a label."""
        return [key for at, key in self.nodes if at == label]

    def _arrive(self, known):
        label = 0 if self.rng.random() < 0.6 else self.rng.randrange(len(self.kinds))
        self.drawn += 1
        key = self.rng.choice(
            [self.drawn, f"{self.drawn}", f"{self.drawn} {self.rng.choice(TEXTS)}"]
        )
        self.nodes[label, key] = self._columns(label)
        if label == 0:
            self.classes[key] = self.rng.choice(CLASSES[:3]) if known else None
        return label, key

    def _columns(self, label):
        return {name: self._value(kind) for name, kind in self.kinds[label].items()}

    def _value(self, kind):
        chance = self.rng.random()
        if chance < MISSING_SHARE:
            return None
        if chance < MISSING_SHARE + WRONG_SHARE:
            kind = self.rng.choice(sorted(MAKERS))
        return MAKERS[kind](self.rng)

    def _join(self, node):
        label, key = node
        fitting = [
            at for at, one in enumerate(self.mapping.relations) if label in (one.source, one.target)
        ]
        if not fitting:
            return None
        at = self.rng.choice(fitting)
        one = self.mapping.relations[at]
        other = self.keys(one.target if one.source == label else one.source)
        if not other:
            return None
        ends = (
            (key, self.rng.choice(other)) if one.source == label else (self.rng.choice(other), key)
        )
        if (at, *ends) in self.relations:
            return None
        self.relations.add((at, *ends))
        return (at, *ends)

    def _part(self, count):
        there = sorted(self.relations, key=repr)
        parted = self.rng.sample(there, min(count, len(there)))
        self.relations -= set(parted)
        return parted

    def _remove(self, node):
        label, key = node
        del self.nodes[node]
        self.classes.pop(key, None) if label == 0 else None
        ends = self.mapping.relations
        self.relations -= {
            (at, a, b)
            for at, a, b in self.relations
            if (ends[at].source, a) == node or (ends[at].target, b) == node
        }


@st.composite
def worlds(draw, columns=4, cut=True):
    """A world without nodes: up to four labels, up to five relations, any names."""
    labels = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    kinds = [
        draw(st.dictionaries(names, st.sampled_from(sorted(MAKERS)), min_size=at == 0,
                             max_size=columns))
        for at in range(len(labels))
    ]  # fmt: skip
    place = st.integers(0, len(labels) - 1)
    drawn = draw(st.lists(st.tuples(place, names, place, st.booleans(), st.booleans()),
                          max_size=5, unique_by=lambda one: one[:3]))  # fmt: skip
    relations = tuple(
        RelationMapping(a, name, b, both, None, late and cut and 0 in (a, b))
        for a, name, b, both, late in drawn
    )
    taken = {"the key", "the class"}
    kinds = [{name: kind for name, kind in one.items() if name not in taken} for one in kinds]
    nodes = tuple(
        NodeMapping(
            label, "the key", tuple(ColumnMapping(name, kind) for name, kind in own.items())
        )
        for label, own in zip(labels, kinds, strict=True)
    )
    mapping = GraphMapping(nodes, relations, "the class", "zoned")
    return World(mapping, kinds, random.Random(draw(st.integers(0, 2**32))))


steps = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)),
    min_size=2,
    max_size=5,
)
