"""Kinds that a file has to name: numbers and booleans kept as text, and lists of ids as sets.

A column without a named kind is what `infer_kind` sees, in a file of today as in one of last year.
`ringfence init` looks closer, and writes what it sees into the file: a retraining of an old file
takes its columns as it always did.
"""

from __future__ import annotations

from collections import Counter

from ringfence.models.encoders.base import Values, plain_values
from ringfence.models.encoders.boolean import is_boolean_text
from ringfence.models.encoders.kinds import (
    DENSE,
    LEAVE,
    MIN_COUNT_FOR_IDS,
    MIN_SHARE,
    KindProposal,
    infer_kind,
)
from ringfence.models.encoders.number import is_number_text, numbers_of

__all__ = ["propose_kind", "read_as"]

MIN_DIFFERENT_NUMBERS = 20  # numbers kept as text; fewer are categories as well
MIN_LISTS = 20
TEXT = {"text": True}


def propose_kind(values: Values) -> KindProposal:
    """Propose the kind of a column from a sample of its values, with what a file has to name.

    >>> propose_kind([f"{n}.5" for n in range(30)]).options
    {'text': True}
    >>> propose_kind([[1, 7], [7], [2, 1, 7]] * 9).kind
    'texts'
    """
    inferred = infer_kind(values)
    there = [value for value in plain_values(values) if value is not None]
    texts = [value for value in there if isinstance(value, str)]
    if texts and len(texts) >= MIN_SHARE * len(there) and inferred.kind not in ("date", "datetime"):
        return _judge_texts(texts) or inferred
    return _judge_ids(there) or inferred if inferred.kind == "numbers" else inferred


def read_as(proposal: KindProposal, values: Values) -> Values:
    """Return values as the proposed kind reads them: numbers kept as text as numbers."""
    if proposal.kind != "number" or not proposal.options:
        return values
    return [None if x != x else x for x in numbers_of(values, text=True).tolist()]


def _judge_texts(texts: list[str]) -> KindProposal | None:
    different = set(texts)
    if sum(map(is_boolean_text, texts)) >= MIN_SHARE * len(texts):
        if len({text.strip().lower() for text in different}) < 2:
            return None
        return KindProposal("boolean", "true and false kept as text", TEXT, named=True)
    if len(different) < MIN_DIFFERENT_NUMBERS:
        return None
    if sum(map(is_number_text, texts)) < MIN_SHARE * len(texts):
        return None
    if any(_is_padded(text) for text in texts):  # postcodes and other codes
        return None
    numbers = [x for x in numbers_of(texts, text=True).tolist() if x == x]
    whole = all(x.is_integer() for x in numbers)
    dense = max(numbers) - min(numbers) < DENSE * len(numbers)
    if whole and dense and len(set(numbers)) == len(numbers) >= MIN_COUNT_FOR_IDS:
        return KindProposal(LEAVE, "integers kept as text that number the nodes: all differ")
    return KindProposal(
        "number", f"numbers kept as text, {len(different)} different ones", TEXT, named=True
    )


def _is_padded(text: str) -> bool:
    """Whether a text begins with a zero that no number needs."""
    digits = text.strip().lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


def _judge_ids(lists: list[list[object]]) -> KindProposal | None:
    """Whole numbers, none twice in a list, and shared by lists: ids of something."""
    filled = [value for value in lists if len(value) > 0]
    if len(filled) < MIN_LISTS or not all(type(item) is int for value in filled for item in value):
        return None
    sets = sum(len(set(value)) == len(value) for value in filled)
    counts = Counter(item for value in filled for item in set(value))
    shared = sum(count for count in counts.values() if count > 1)
    if sets < MIN_SHARE * len(filled) or shared < MIN_SHARE * counts.total():
        return None
    shortest, longest = min(map(len, lists)), max(map(len, lists))
    return KindProposal(
        "texts",
        f"lists of {shortest} to {longest} ids, {len(counts)} different ones, none twice in a "
        'list: a set of categories, hashed; kind = "numbers" takes their summary',
        named=True,
    )
