"""How a user's graph maps onto nodes, columns, classes and times.

`GraphMapping` is what every part of the connector takes: the names of the classified label. Where
the configuration names several labels, its `typed` part has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

TimeKind = Literal["zoned", "local", "milliseconds"]
"""How `created_at` is stored: ZONED DATETIME, LOCAL DATETIME (read as UTC) or INTEGER."""

ArrivalWay = Literal["created_at", "keys"]
"""How new nodes are found: by a creation time after the watermark, or as keys not yet known."""


@dataclass(frozen=True, slots=True)
class RelationshipMapping:
    """One relationship type that carries messages between nodes."""

    type: str
    undirected: bool = True
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """A property that is fed to the network; without `kind` its values decide at training.

    `options` are those of the kind's encoder.
    """

    name: str
    kind: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeMapping:
    """One label: its key, the properties that are fed to the network, its creation time."""

    label: str
    key: str
    columns: tuple[ColumnMapping, ...] = ()
    created_at: str | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        """The properties, in the order of the mirror's columns."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class RelationMapping:
    """A relationship type between two labels, by their places in `TypedMapping.nodes`.

    `after_evaluation` marks a type that is set only after a node was evaluated: it is cut at
    calibration nodes and due nodes alike.
    """

    source: int
    type: str
    target: int
    undirected: bool = True
    created_at: str | None = None
    after_evaluation: bool = False


@dataclass(frozen=True, slots=True)
class TypedMapping:
    """Several labels: the classified one stands first, the others are its context."""

    nodes: tuple[NodeMapping, ...]
    relations: tuple[RelationMapping, ...]
    class_property: str
    time_kind: TimeKind

    @property
    def classified(self) -> NodeMapping:
        """The label whose nodes get prediction sets."""
        return self.nodes[0]

    @property
    def arrival(self) -> ArrivalWay:
        """How new nodes of the classified label are found."""
        return "created_at" if self.classified.created_at else "keys"

    @property
    def inner_relations(self) -> list[int]:
        """Places of the relations inside the classified label that are there at evaluation."""
        return [
            index
            for index, one in enumerate(self.relations)
            if one.source == one.target == 0 and not one.after_evaluation
        ]

    def describe(self, relation: RelationMapping) -> str:
        """Return a relation as Cypher draws it.

        >>> nodes = (NodeMapping("Flight", "id"), NodeMapping("Airport", "faa"))
        >>> mapping = TypedMapping(nodes, (RelationMapping(0, "TO", 1),), "delay", "zoned")
        >>> mapping.describe(mapping.relations[0])
        '(:Flight)-[:TO]->(:Airport)'
        """
        source, target = self.nodes[relation.source].label, self.nodes[relation.target].label
        return f"(:{source})-[:{relation.type}]->(:{target})"


@dataclass(frozen=True, slots=True)
class GraphMapping:
    """Names in the user's graph; each passes `quoting.quote` before it meets Cypher.

    With several labels these are the names of the classified one: no `features`, the relationship
    types inside the label, and an empty `created_at` where new nodes are keys not yet known.
    `typed` stays out of the representation, which names the mirrors of one-label projects.
    """

    label: str
    key: str
    features: tuple[str, ...]
    features_are_list: bool
    class_property: str
    created_at: str
    time_kind: TimeKind
    relationships: tuple[RelationshipMapping, ...]
    typed: TypedMapping | None = field(default=None, repr=False)
