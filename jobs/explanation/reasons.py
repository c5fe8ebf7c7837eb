"""Why this set, as values: what each neighbour, relationship type and column does to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NEIGHBOUR, TYPE, COLUMN = "neighbour", "relationship type", "column"
EXACT = "exact"
"""The method of ringfence's own passes; any other name is that of one of PyG's explainers."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is asked about: a neighbour, all neighbours of a relationship type, or a column.

    relation: the type that joins the neighbour, where the graph has several. label, class_: of the
    neighbour, where there are several labels, and where its class is known.
    """

    kind: str
    name: str
    relation: str | None = None
    label: str | None = None
    class_: str | None = None

    def describe(self) -> str:
        """Return the part in words.

        >>> Part("neighbour", "JFK", "TO", "Airport").describe()
        'neighbour Airport JFK by TO'
        """
        front = f"{self.kind} {self.label} " if self.label else f"{self.kind} "
        through = f" by {self.relation}" if self.relation and self.kind == NEIGHBOUR else ""
        class_ = f" ({self.class_})" if self.class_ else ""
        return f"{front}{self.name}{through}{class_}"


@dataclass(frozen=True, slots=True)
class Reason:
    """What a part does: p-values by class without it, and what changes.

    enters, leaves: classes that would come into the set, or go out of it. moved: the largest change
    of a p-value. `weight` is what one of PyG's explainers gives in place of all these.
    """

    part: Part
    p_values: tuple[float, ...] = ()
    enters: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    moved: float = 0.0
    weight: float | None = None

    @property
    def flips(self) -> bool:
        """Whether the set would be another one."""
        return bool(self.enters or self.leaves)

    def as_json(self) -> dict[str, Any]:
        """Return the values under the keys of `ringfence explain --why --json`."""
        part = self.part
        named = {"kind": part.kind, "name": part.name, "relation": part.relation}
        named |= {"label": part.label, "class": part.class_}
        if self.weight is not None:
            return named | {"weight": self.weight}
        return named | {
            "p_values": self.p_values,
            "enters": self.enters,
            "leaves": self.leaves,
            "moved": self.moved,
        }


@dataclass(frozen=True, slots=True)
class SmallestChange:
    """The smallest change that was found to take a class in or out; none of its parts can stay.

    p: the class's p-value after it; level: what it is compared with.
    """

    class_: str
    enters: bool
    parts: tuple[Part, ...]
    p: float
    level: float

    def describe(self) -> str:
        """Return the change as a sentence.

        >>> SmallestChange("mule", True, (Part("column", "age"),), 0.2, 0.1).describe()
        'mule would come in (p = 0.200) without column age'
        """
        how = "come in" if self.enters else "go out"
        listed = " and ".join(part.describe() for part in self.parts)
        return f"{self.class_} would {how} (p = {self.p:.3f}) without {listed}"

    def as_json(self) -> dict[str, Any]:
        """Return the values under the keys of `ringfence explain --why --json`."""
        return {
            "class": self.class_,
            "enters": self.enters,
            "without": [part.describe() for part in self.parts],
            "p": self.p,
            "level": self.level,
        }


@dataclass(frozen=True, slots=True)
class Reasons:
    """Everything that was asked about a node, the strongest first.

    `p_values` are those on the graph that `graph` names in words, `levels` what they are compared
    with, `classes_in_set` the classes above (with `nonempty = true` the likeliest one where none
    is); `asked` and `neighbours` count the neighbours that were asked about and all.
    `left_unasked`: questions that the time limit left open; `stopped` says what the limit ended,
    and is empty where nothing is missing. An answer without p-values has none because the time was
    over before.
    """

    graph: str
    model: str
    classes: tuple[str, ...]
    p_values: tuple[float, ...]
    levels: tuple[float, ...]
    classes_in_set: tuple[str, ...]
    neighbours: int
    asked: int
    reasons: tuple[Reason, ...]
    smallest: tuple[SmallestChange, ...] = ()
    method: str = EXACT
    left_unasked: int = 0
    stopped: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return what `ringfence explain --why --json` prints."""
        return {
            "graph": self.graph,
            "model": self.model,
            "method": self.method,
            "classes": self.classes,
            "p_values": self.p_values,
            "levels": self.levels,
            "set": self.classes_in_set,
            "neighbours": self.neighbours,
            "asked": self.asked,
            "left_unasked": self.left_unasked,
            "stopped": self.stopped or None,
            "reasons": [reason.as_json() for reason in self.reasons],
            "smallest_changes": [change.as_json() for change in self.smallest],
        }
