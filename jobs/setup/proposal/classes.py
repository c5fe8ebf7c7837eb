"""Which property is the class: candidates with points and the reasons for them.

A candidate has 2 to 50 values, is neither a date nor an identifier, and no value makes up nearly
all nodes. Points: missing in some nodes (a class becomes known late), values in words, a name that
says what happened; against it: whole numbers, places, parts of a date, very rare values. Two
candidates within one point of each other are for a person to tell apart.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ringfence.connector.neo4j.sample import LabelSample, SampledProperty

MAX_CLASSES = 50
MAX_SHARE_OF_ONE = 0.98
MIN_NODES_PER_VALUE = 10
CLOSE = 1.0  # points between two candidates that a person must tell apart

OUTCOME = re.compile(
    r"status|outcome|class|fraud|label|result|verdict|disposition|decision|risk|churn|default"
    r"|kind|state_of|severity",
    re.IGNORECASE,
)
TYPE = re.compile(r"type|category|group", re.IGNORECASE)
PLACE = re.compile(
    r"city|town|country|region|zip|post|street|address|county|area|state$|lat|lon|zone|dst",
    re.IGNORECASE,
)
DATE_PART = re.compile(r"^(year|month|day|hour|minute|week|weekday|quarter|dow)", re.IGNORECASE)
CLASS_TYPES = {"STRING", "INTEGER", "BOOLEAN"}


@dataclass(frozen=True, slots=True)
class ClassCandidate:
    """A property that may be the class: points, reasons, and how often each value was seen."""

    name: str
    points: float
    reasons: tuple[str, ...]
    values: dict[str, int]

    @property
    def why(self) -> str:
        """The reasons as one sentence."""
        return f"{self.points:+g} points: {', '.join(self.reasons)}"


def rank_classes(sample: LabelSample) -> list[ClassCandidate]:
    """Return the candidates of a label, the likeliest first."""
    judged = [
        _judge(property_)
        for property_ in sample.properties.values()
        if property_.name not in sample.unique
    ]
    candidates = [ranked for ranked in judged if ranked is not None]
    return sorted(
        candidates, key=lambda candidate: (-candidate.points, len(candidate.values), candidate.name)
    )


def doubt_class(sample: LabelSample, name: str) -> str | None:
    """Return why a property that a person names is no likely class; None where it may be one."""
    named = sample.properties[name]
    values = Counter(str(value) for value in named.values if value is not None)
    there = sum(values.values())
    if name in sample.unique or (there > MIN_NODES_PER_VALUE and len(values) == there):
        return "every node has another value: it is a key"
    if named.type not in CLASS_TYPES:
        return f"its values are of the type {named.type}, no names of classes"
    if len(values) > MAX_CLASSES or len(values) * 4 > there:
        return f"{len(values)} values in {there} sampled nodes; sets of so many are rarely read"
    if len(values) < 2:
        return f"{len(values)} value in the sampled nodes; two classes are needed"
    if max(values.values()) >= MAX_SHARE_OF_ONE * there:
        return f"one value makes up {max(values.values()) / there:.0%} of the nodes"
    return None


def are_close(candidates: list[ClassCandidate]) -> bool:
    """Whether the first two candidates are too close for a program to choose."""
    return len(candidates) > 1 and candidates[0].points - candidates[1].points <= CLOSE


def _judge(candidate: SampledProperty) -> ClassCandidate | None:
    if candidate.type not in CLASS_TYPES or candidate.there < 2 * MIN_NODES_PER_VALUE:
        return None
    counts = Counter(str(value) for value in candidate.values if value is not None)
    there = sum(counts.values())
    if not 2 <= len(counts) <= MAX_CLASSES or len(counts) * 4 > there:
        return None
    if max(counts.values()) >= MAX_SHARE_OF_ONE * there:
        return None
    points, reasons = 0.0, [f"{len(counts)} values"]
    for applies, worth, reason in _rules(candidate, counts):
        if applies:
            points += worth
            reasons.append(reason)
    return ClassCandidate(candidate.name, points, tuple(reasons), dict(counts.most_common()))


def _rules(candidate: SampledProperty, counts: Counter[str]) -> list[tuple[bool, float, str]]:
    words = candidate.type == "BOOLEAN" or not any(value.lstrip("-").isdigit() for value in counts)
    return [
        (0.0 < candidate.share < 1.0, 1.0, f"known for {candidate.share:.0%} of the nodes"),
        (words, 1.0, "in words" if candidate.type == "STRING" else "true or false"),
        (bool(OUTCOME.search(candidate.name)), 1.0, "named like an outcome"),
        (bool(TYPE.search(candidate.name)), 0.5, "named like a category"),
        (candidate.type == "INTEGER", -1.0, "whole numbers"),
        (bool(PLACE.search(candidate.name)), -1.0, "named like a place"),
        (bool(DATE_PART.search(candidate.name)), -1.0, "named like a part of a date"),
        (
            min(counts.values()) < MIN_NODES_PER_VALUE,
            -1.0,
            f"a value seen {min(counts.values())} times",
        ),
    ]
