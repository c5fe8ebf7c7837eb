"""Why this set, as values: what each neighbour, relationship type and column does to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

NEIGHBOUR, TYPE, COLUMN = "neighbour", "relationship type", "column"
MIN_EVIDENCE = 1e-6  # of log odds: less is rounding
MAX_LOG_ODDS = 50.0
MANY_TIMES = 1_000.0
MAX_TOLD = 2  # parts for a class, and against it, in a sentence
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

    `evidence` is by how much a class's log odds are higher with the part than without it: it says
    something where a p-value is at its end and can't move. enters, leaves: classes that would come
    into the set, or go out of it. moved: the largest change of a p-value. `weight` is what one of
    PyG's explainers gives in place of all these. `value` says what the column's value is among
    other nodes', or what the neighbour is and whom it is joined to; empty where nothing is told.
    """

    part: Part
    p_values: tuple[float, ...] = ()
    enters: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    moved: float = 0.0
    weight: float | None = None
    evidence: tuple[float, ...] = ()
    value: str = ""

    @property
    def strength(self) -> float:
        """The largest evidence for or against a class; nothing where none was counted."""
        return max((abs(value) for value in self.evidence), default=0.0)

    @property
    def flips(self) -> bool:
        """Whether the set would be another one."""
        return bool(self.enters or self.leaves)

    def describe(self) -> str:
        """Return the part with its value.

        >>> Reason(Part("column", "balance"), value="377.7, lower than 96 %").describe()
        'column balance: 377.7, lower than 96 %'
        >>> Reason(Part("neighbour", "d102", label="Device"), value="emulated").describe()
        'neighbour Device d102, emulated'
        """
        between = ": " if self.part.kind == COLUMN else ", "
        return (
            f"{self.part.describe()}{between}{self.value}" if self.value else self.part.describe()
        )

    def as_json(self) -> dict[str, Any]:
        """Return the values under the keys of `ringfence explain --why --json`."""
        part = self.part
        named = {"kind": part.kind, "name": part.name, "relation": part.relation}
        named |= {"label": part.label, "class": part.class_, "value": self.value or None}
        if self.weight is not None:
            return named | {"weight": self.weight}
        return named | {
            "p_values": self.p_values,
            "enters": self.enters,
            "leaves": self.leaves,
            "moved": self.moved,
            "evidence": self.evidence,
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
    log_odds: tuple[float, ...] = ()

    @property
    def likeliest(self) -> int:
        """The place of the class with the highest log odds, else with the highest p-value."""
        by = self.log_odds or self.p_values
        return max(range(len(by)), key=lambda place: by[place], default=0)

    @property
    def sentence(self) -> str:
        """What the likeliest class rests on; empty where no evidence was counted."""
        return describe_evidence(self) if self.log_odds and self.reasons else ""

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
            "log_odds": self.log_odds,
            "words": self.sentence or None,
            "reasons": [reason.as_json() for reason in self.reasons],
            "smallest_changes": [change.as_json() for change in self.smallest],
        }


def describe_evidence(reasons: Reasons) -> str:
    """Say what the likeliest class rests on, or that no single part moves it.

    >>> part = Part("neighbour", "d102", "USES", "Device")
    >>> reason = Reason(part, (0.5, 0.2), evidence=(1.1, -1.1))
    >>> asked = Reasons("", "", ("mule", "retail"), (0.5, 0.2), (0.1, 0.1), (), 1, 1, (reason,),
    ...                 log_odds=(2.0, -2.0))
    >>> describe_evidence(asked)
    'for mule speaks most neighbour Device d102 by USES (odds times 3)'
    """
    place = reasons.likeliest
    name = reasons.classes[place]
    told = [
        reason
        for reason in reasons.reasons
        if len(reason.evidence) > place and abs(reason.evidence[place]) > MIN_EVIDENCE
    ]
    told.sort(key=lambda reason: -abs(reason.evidence[place]))
    if not told:
        return (
            f"no single neighbour or column moves the odds of {name}: what the version learnt of "
            "all nodes speaks alone (the prior)"
        )
    for_it = [reason for reason in told if reason.evidence[place] > 0][:MAX_TOLD]
    against = [reason for reason in told if reason.evidence[place] < 0][:MAX_TOLD]
    parts = []
    for side, chosen in (("for", for_it), ("against", against)):
        if chosen:
            listed = ", then ".join(_tell(reason, place) for reason in chosen)
            parts.append(f"{side} {name} speaks most {listed}")
    return "; ".join(parts)


def _tell(reason: Reason, place: int) -> str:
    return f"{reason.describe()} (odds {odds_factor(reason.evidence[place])})"


def odds_factor(evidence: float) -> str:
    """Return by what a class's odds are multiplied, from a difference of log odds.

    >>> odds_factor(1.0986), odds_factor(-0.6931), odds_factor(0.001), odds_factor(20.0)
    ('times 3', 'divided by 2', 'times 1', 'times 1,000 or more')
    """
    how = "times" if evidence >= 0 else "divided by"
    factor = math.exp(min(abs(evidence), MAX_LOG_ODDS))
    return f"{how} 1,000 or more" if factor >= MANY_TIMES else f"{how} {factor:.3g}"
