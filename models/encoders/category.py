"""Categories: one column per frequent value, one for rare or unseen ones, one for missing."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import (
    MISSING,
    Encoder,
    EncoderRefused,
    Float32s,
    Values,
    plain_values,
)

__all__ = ["CategoryEncoder", "category_key"]

RARE_OR_UNSEEN = "rare or unseen"
MAX_KEY_CHARS = 200  # longer text stands in the state as a hash
MAX_CATEGORIES = 4_096


@dataclass(frozen=True, slots=True)
class CategoryEncoder(Encoder):
    """The most frequent values of training, the most frequent first; equal ones by their text.

    Text, integers and booleans are categories of their own: 1, "1" and true are three values.
    Options: ``categories`` that get a column, ``least``: how often one must be seen for it.
    """

    keys: tuple[str, ...]
    places: dict[str, int] = field(default_factory=dict, compare=False)
    options: ClassVar[Mapping[str, Any]] = {"categories": 64, "least": 2}

    def __post_init__(self) -> None:
        """Number the keys."""
        self.places.update({key: place for place, key in enumerate(self.keys)})

    @classmethod
    def fit(cls, values: Values, categories: int = 64, least: int = 2) -> Self:
        """Count the values.

        >>> CategoryEncoder.fit(["a", "a", "b", "b", "c"]).names
        ('a', 'b', 'rare or unseen', 'missing')
        """
        if not 1 <= categories <= MAX_CATEGORIES:
            raise EncoderRefused(
                f"{categories} categories; 1 to {MAX_CATEGORIES} can have a column"
            )
        counts = Counter(map(category_key, plain_values(values)))
        counts.pop(None, None)
        common = [(-seen, key) for key, seen in counts.items() if seen >= least and key is not None]
        return cls(tuple(key for _, key in sorted(common)[:categories]))

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        return cls(tuple(facts["keys"]))

    def facts(self) -> dict[str, Any]:
        """Return the values that have a column."""
        return {"keys": list(self.keys)}

    @property
    def names(self) -> tuple[str, ...]:
        """The values, rare or unseen, missing."""
        return (*(key.partition(":")[2] for key in self.keys), RARE_OR_UNSEEN, MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, values + 2], a single 1 in each row."""
        known = len(self.keys)
        keys = [category_key(value) for value in plain_values(values)]
        at = [known + 1 if key is None else self.places.get(key, known) for key in keys]
        out = np.zeros((len(at), known + 2), np.float32)
        out[np.arange(len(at)), np.array(at, np.int64)] = 1.0
        return out


def category_key(value: Any) -> str | None:
    """Return a value as typed text; None where it is missing or no category, such as a list.

    >>> [category_key(value) for value in ("1", 1, True, None, [1])]
    ['s:1', 'i:1', 'b:True', None, None]
    """
    kind = type(value)
    if kind is str:
        return f"s:{value}" if len(value) <= MAX_KEY_CHARS else f"h:{_hashed(value)}"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return f"b:{value}"
    if isinstance(value, int):
        return f"i:{value}" if abs(value) < 10**MAX_KEY_CHARS else None
    if isinstance(value, float):
        return f"f:{value!r}"
    if hasattr(value, "isoformat") or hasattr(value, "iso_format"):
        return f"t:{str(value)[:MAX_KEY_CHARS]}"
    return None


def _hashed(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
