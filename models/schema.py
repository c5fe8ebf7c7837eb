"""The labels of a typed graph and the ways that messages take between them.

A relationship type joins two labels. Each way along which messages flow through it is a channel:
from source to target, and back where the type is undirected. A channel has weights of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["CLASSIFIED", "Channel", "Relation", "TypedSchema"]

CLASSIFIED = 0  # the label whose nodes get prediction sets stands first


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship type between two labels, by their places in `TypedSchema.labels`.

    `cut`: the type carries no messages, as one that is set only after a node was evaluated.
    """

    source: int
    type: str
    target: int
    undirected: bool = True
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Channel:
    """Messages from one label to another through one relation.

    `codes` are those of a relationship at its receiving end, as the mirror stores them: the
    relation times two, plus one where it points to the receiver. A relation inside one label that
    is undirected has one channel, with both codes.
    """

    source: int
    target: int
    name: str
    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TypedSchema:
    """Labels, the classified one first, and relations between them; their order is part of it."""

    labels: tuple[str, ...]
    relations: tuple[Relation, ...]

    def __post_init__(self) -> None:
        """Refuse relations of labels that aren't there."""
        for one in self.relations:
            if not (0 <= one.source < len(self.labels) and 0 <= one.target < len(self.labels)):
                raise ValueError(f"relation {one.type!r} joins a label that is not there")

    @property
    def channels(self) -> tuple[Channel, ...]:
        """All channels, in the order of the relations.

        >>> schema = TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),))
        >>> [(one.source, one.target, one.name, one.codes) for one in schema.channels]
        [(0, 1, 'TO', (1,)), (1, 0, 'rev_TO', (0,))]
        """
        found: list[Channel] = []
        for index, one in enumerate(self.relations):
            there, back = 2 * index + 1, 2 * index
            if one.cut:
                continue
            if one.undirected and one.source == one.target:
                found.append(Channel(one.source, one.target, one.type, (back, there)))
                continue
            found.append(Channel(one.source, one.target, one.type, (there,)))
            if one.undirected:
                found.append(Channel(one.target, one.source, f"rev_{one.type}", (back,)))
        return tuple(found)

    @property
    def edge_types(self) -> tuple[tuple[str, str, str], ...]:
        """The channels as PyG's `HeteroData` names them: (label, name, label).

        >>> TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),)).edge_types[1]
        ('Airport', 'rev_TO', 'Flight')
        """
        return tuple(
            (self.labels[one.source], one.name, self.labels[one.target]) for one in self.channels
        )

    def labels_by_layer(self, layers: int) -> tuple[frozenset[int], ...]:
        """For each layer, the labels whose rows it has to compute; the last has the classified.

        >>> TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),)).labels_by_layer(2)
        (frozenset({0, 1}), frozenset({0}))
        """
        needed = [frozenset({CLASSIFIED})]
        for _ in range(layers - 1):
            near = {one.source for one in self.channels if one.target in needed[0]}
            needed.insert(0, needed[0] | near)
        return tuple(needed)

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON takes it."""
        return {"labels": list(self.labels), "relations": [asdict(one) for one in self.relations]}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> TypedSchema:
        """Return the schema that `to_json` was taken from."""
        relations = tuple(Relation(**one) for one in facts["relations"])
        return cls(tuple(facts["labels"]), relations)
