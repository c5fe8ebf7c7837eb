"""The labels of a typed graph and the ways that messages take between them.

A relationship type joins two labels. Each way along which messages flow through it is a channel:
from source to target, and back where the type is undirected. A channel has weights of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["ALWAYS", "CLASSIFIED", "Channel", "Relation", "TypedSchema"]

ALWAYS = int(np.iinfo(np.int64).min)  # the time of what was there before everything else
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
        for relation in self.relations:
            places = range(len(self.labels))
            if relation.source not in places or relation.target not in places:
                raise ValueError(f"relation {relation.type!r} joins a label that is not there")

    @property
    def channels(self) -> tuple[Channel, ...]:
        """All channels, in the order of the relations.

        >>> schema = TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),))
        >>> there, back = schema.channels
        >>> there
        Channel(source=0, target=1, name='TO', codes=(1,))
        >>> back
        Channel(source=1, target=0, name='rev_TO', codes=(0,))
        """
        channels: list[Channel] = []
        for index, relation in enumerate(self.relations):
            there, back = 2 * index + 1, 2 * index
            source, target, name = relation.source, relation.target, relation.type
            if relation.cut:
                continue
            if relation.undirected and source == target:
                channels.append(Channel(source, target, name, (back, there)))
                continue
            channels.append(Channel(source, target, name, (there,)))
            if relation.undirected:
                channels.append(Channel(target, source, f"rev_{name}", (back,)))
        return tuple(channels)

    @property
    def edge_types(self) -> tuple[tuple[str, str, str], ...]:
        """The channels as PyG's `HeteroData` names them: (label, name, label).

        >>> TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),)).edge_types[1]
        ('Airport', 'rev_TO', 'Flight')
        """
        return tuple(
            (self.labels[channel.source], channel.name, self.labels[channel.target])
            for channel in self.channels
        )

    def labels_by_layer(self, layers: int) -> tuple[frozenset[int], ...]:
        """For each layer, the labels whose rows it has to compute; the last has the classified.

        >>> TypedSchema(("Flight", "Airport"), (Relation(0, "TO", 1),)).labels_by_layer(2)
        (frozenset({0, 1}), frozenset({0}))
        """
        needed = [frozenset({CLASSIFIED})]
        for _ in range(layers - 1):
            near = {channel.source for channel in self.channels if channel.target in needed[0]}
            needed.insert(0, needed[0] | near)
        return tuple(needed)

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON takes it."""
        return {
            "labels": list(self.labels),
            "relations": [asdict(relation) for relation in self.relations],
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> TypedSchema:
        """Return the schema that `to_json` was taken from."""
        relations = tuple(Relation(**relation) for relation in facts["relations"])
        return cls(tuple(facts["labels"]), relations)
