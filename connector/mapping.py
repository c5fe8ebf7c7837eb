"""How a user's graph maps onto nodes, columns, classes and times.

`GraphMapping` is what every part of the connector takes: labels, relationship types between them,
the class and the times. A graph of one label is a mapping with one label in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

TimeKind = Literal["zoned", "local", "milliseconds"]
"""How `created_at` is stored: ZONED DATETIME, LOCAL DATETIME (read as UTC) or INTEGER."""

ArrivalWay = Literal["created_at", "keys"]
"""How new nodes are found: by a creation time after the watermark, or as keys not yet known."""

VECTOR, NUMBER = "vector", "number"
"""Kinds of the columns of strict features: one list of numbers, or a number per property."""


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
    """A relationship type between two labels, by their places in `GraphMapping.nodes`.

    `after_evaluation` marks a type that is set only after a node was evaluated: it is cut at
    calibration nodes and due nodes alike. With `columns` every relationship counts, parallel ones
    too; without, each pair of ends counts once.
    """

    source: int
    type: str
    target: int
    undirected: bool = True
    created_at: str | None = None
    after_evaluation: bool = False
    columns: tuple[ColumnMapping, ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """The properties, in the order of the mirror's columns."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class GraphMapping:
    """Names in the user's graph; each passes `quoting.quote` before it meets Cypher.

    The classified label stands first in `nodes`, the others are its context.

    features_are_strict: the columns of the classified label are numbers that every node must have.
        A node whose numbers are missing or wrong goes to quarantine, where other columns would
        encode a missing value; a network takes them as one vector, without encoders. Only a
        mapping of one label has this.
    """

    nodes: tuple[NodeMapping, ...]
    relations: tuple[RelationMapping, ...]
    class_property: str
    time_kind: TimeKind
    features_are_strict: bool = False

    @property
    def classified(self) -> NodeMapping:
        """The label whose nodes get prediction sets."""
        return self.nodes[0]

    @property
    def arrival(self) -> ArrivalWay:
        """How new nodes of the classified label are found."""
        return "created_at" if self.classified.created_at else "keys"

    @property
    def column_names(self) -> tuple[tuple[str, ...], ...]:
        """The properties of each label, in the order of the mirror's columns."""
        return tuple(node.column_names for node in self.nodes)

    @property
    def relation_columns(self) -> dict[int, tuple[str, ...]]:
        """The properties of each relation that has columns, by its place."""
        return {
            index: relation.column_names
            for index, relation in enumerate(self.relations)
            if relation.columns
        }

    @property
    def features_are_list(self) -> bool:
        """Whether strict features are one property that holds a list of numbers."""
        return self.features_are_strict and self.classified.columns[0].kind == VECTOR

    @property
    def names_to_read(self) -> tuple[object, ...]:
        """What decides which values are read from the graph.

        Kinds of columns count only where they do; directions of relationships never do.
        """
        strict = self.features_are_strict
        nodes = [
            (node.label, node.key, node.created_at,
             [(column.name, column.kind if strict else None) for column in node.columns])
            for node in self.nodes
        ]  # fmt: skip
        relations = [
            (relation.source, relation.type, relation.target, relation.created_at)
            for relation in self.relations
        ]
        names = nodes, relations, self.class_property, self.time_kind, strict
        return (*names, self.relation_columns) if self.relation_columns else names

    @property
    def classified_relations(self) -> tuple[RelationMapping, ...]:
        """The relations between nodes of the classified label."""
        return tuple(
            relation for relation in self.relations if relation.source == relation.target == 0
        )

    @property
    def inner_relations(self) -> list[int]:
        """Places of the relations inside the classified label that are there at evaluation."""
        return [
            index
            for index, relation in enumerate(self.relations)
            if relation.source == relation.target == 0 and not relation.after_evaluation
        ]

    def describe(self, relation: RelationMapping) -> str:
        """Return a relation as Cypher draws it.

        >>> nodes = (NodeMapping("Flight", "id"), NodeMapping("Airport", "faa"))
        >>> mapping = GraphMapping(nodes, (RelationMapping(0, "TO", 1),), "delay", "zoned")
        >>> mapping.describe(mapping.relations[0])
        '(:Flight)-[:TO]->(:Airport)'
        """
        source, target = self.nodes[relation.source].label, self.nodes[relation.target].label
        return f"(:{source})-[:{relation.type}]->(:{target})"


def map_one_label(
    label: str,
    key: str,
    features: str | Sequence[str],
    class_property: str,
    created_at: str,
    time_kind: TimeKind = "zoned",
    relations: Sequence[RelationMapping] = (),
) -> GraphMapping:
    """Return the mapping of one label with strict features.

    Args:
        label: of the nodes to predict.
        key: the property that is unique per node.
        features: one property that holds a list of numbers, or several that hold a number each.
        class_property: the property with the known class.
        created_at: the property with the creation time.
        time_kind: how creation times are stored.
        relations: relationship types between nodes of the label, which is at place 0.

    >>> map_one_label("Account", "id", ["age", "balance"], "kind", "created_at").column_names
    (('age', 'balance'),)
    """
    if isinstance(features, str):
        columns = [ColumnMapping(features, VECTOR)]
    else:
        columns = [ColumnMapping(name, NUMBER) for name in features]
    node = NodeMapping(label, key, tuple(columns), created_at)
    return GraphMapping(
        (node,), tuple(relations), class_property, time_kind, features_are_strict=True
    )
