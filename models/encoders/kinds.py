"""Which kind a column is, judged by its values, with the reason."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringfence.models.encoders.base import Values, plain_values
from ringfence.models.encoders.calendar import NONE, moments_of
from ringfence.models.encoders.category import category_key

__all__ = ["LEAVE", "KindProposal", "infer_kind"]

LEAVE = "leave"
MIN_SHARE = 0.95  # of the values that must be of one type
MIN_COUNT_FOR_IDS = 20  # below, values that all differ prove nothing
MAX_CATEGORY_SHARE = 0.5  # distinct values per value, above which text is no category
MIN_COVERED = 0.5  # share of the values that the 64 most frequent must make up
WORDS_OF_TEXT = 3.0  # mean words from which on a value is read as text
DENSE = 4  # integers that all differ and fill a quarter of their range number the nodes


@dataclass(frozen=True, slots=True)
class KindProposal:
    """A kind of the registry, or `LEAVE`, and why.

    options: of its encoder. named: the kind is not what a column without one gets.
    """

    kind: str
    reason: str
    options: Mapping[str, bool | int | str] = field(default_factory=dict)
    named: bool = False

    @property
    def usable(self) -> bool:
        """Whether the column is worth using."""
        return self.kind != LEAVE


def infer_kind(values: Values) -> KindProposal:
    """Propose the kind of a column from a sample of its values, None for missing.

    >>> infer_kind([1.5, 2.0, None]).kind, infer_kind(["a", "b"] * 20).kind
    ('number', 'category')
    """
    there = [value for value in plain_values(values) if not _is_missing(value)]
    if not there:
        return KindProposal(LEAVE, "no node of the sample has a value")
    types = Counter(map(_type_of, there))
    if {"integer", "number"} <= set(types):
        types["number"] += types.pop("integer")
    type_name, count = max(types.items(), key=lambda item: (item[1], item[0]))
    if count < MIN_SHARE * len(there):
        mixed = ", ".join(f"{share} {name}" for name, share in types.most_common())
        return KindProposal(LEAVE, f"values of several types: {mixed}")
    if type_name == "other":
        return KindProposal(
            LEAVE, f"values of a type without an encoder: {type(there[0]).__name__}"
        )
    of_type = [value for value in there if _type_of(value) in (type_name, _NARROWER.get(type_name))]
    if type_name not in ("vector", "numbers", "texts") and _count_distinct(of_type) == 1 < len(
        of_type
    ):
        return KindProposal(LEAVE, "one value in all nodes of the sample")
    judge = _REFINE.get(type_name)
    return judge(of_type) if judge else KindProposal(type_name, f"all are {type_name} values")


def _type_of(value: Any) -> str:
    """The name of the simplest kind that takes a value."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, bytes | bytearray):
        return "vector"
    if isinstance(value, dt.timedelta | np.timedelta64) or hasattr(value, "months"):
        return "duration"
    if hasattr(value, "srid"):
        return "point"
    if isinstance(value, list | tuple):
        return _type_of_list(value)
    if hasattr(value, "to_native") and hasattr(value, "dtype"):  # the driver's Vector
        return "vector"
    return _type_of_moment(value)


def _type_of_list(value: Any) -> str:
    items = [item for item in value if item is not None]
    if all(isinstance(item, int | float) and not isinstance(item, bool) for item in items):
        return "numbers"
    return "texts" if all(category_key(item) is not None for item in items) else "other"


def _type_of_moment(value: Any) -> str:
    days, minutes = moments_of([value])
    if days[0] == NONE:
        return "other" if minutes[0] == NONE else "time"
    return "date" if minutes[0] == NONE else "datetime"


def _judge_integers(values: list[int]) -> KindProposal:
    distinct, n = len(set(values)), len(values)
    if distinct == n >= MIN_COUNT_FOR_IDS and max(values) - min(values) < DENSE * n:
        return KindProposal(LEAVE, "integers that number the nodes: every value differs")
    return KindProposal("integer", f"integers, {distinct} different ones")


def _judge_numbers(values: list[float]) -> KindProposal:
    return KindProposal("number", f"numbers, {len(set(values))} different ones")


def _judge_text(values: list[str]) -> KindProposal:
    dated = _judge_dated_text(values)
    if dated is not None:
        return dated
    counts, n = Counter(values), len(values)
    words = sum(len(value.split()) for value in values) / n
    covered = sum(count for _, count in counts.most_common(64)) / n
    if len(counts) <= MAX_CATEGORY_SHARE * n and covered >= MIN_COVERED:
        return KindProposal("category", f"{len(counts)} different texts in {n} nodes")
    if words >= WORDS_OF_TEXT:
        return KindProposal("text", f"texts of {words:.1f} words")
    if len(counts) == n >= MIN_COUNT_FOR_IDS:
        return KindProposal(LEAVE, "an identifier: every value differs and has one or two words")
    if n < MIN_COUNT_FOR_IDS:
        return KindProposal("category", f"{len(counts)} different texts in only {n} nodes")
    return KindProposal("text", f"{len(counts)} different short texts in {n} nodes: hashed")


def _judge_dated_text(values: list[str]) -> KindProposal | None:
    days, minutes = moments_of([value if len(value) >= len("2013-1-1") else "" for value in values])
    if (days != NONE).mean() < MIN_SHARE:
        return None
    timed = bool((minutes[days != NONE] != NONE).mean() >= MIN_SHARE)
    return KindProposal("datetime" if timed else "date", "texts in ISO 8601")


def _judge_lists(values: list[Any]) -> KindProposal:
    lengths = Counter(map(len, values))
    length, count = lengths.most_common(1)[0]
    if count == len(values) and length > 0:
        return KindProposal("vector", f"lists of {length} numbers")
    shortest, longest = min(lengths), max(lengths)
    return KindProposal("numbers", f"lists of {shortest} to {longest} numbers: their summary")


def _judge_texts(values: list[Any]) -> KindProposal:
    return KindProposal("texts", f"lists of texts or ids, up to {max(map(len, values))} long")


_NARROWER = {"number": "integer"}
_REFINE: dict[str, Callable[[list[Any]], KindProposal]] = {
    "integer": _judge_integers,
    "number": _judge_numbers,
    "text": _judge_text,
    "numbers": _judge_lists,
    "texts": _judge_texts,
}


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _count_distinct(values: list[Any]) -> int:
    return len({repr(value) for value in values[:10_000]})
