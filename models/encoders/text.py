"""Text, and lists of texts or ids: hashed into a fixed number of columns."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
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
from ringfence.models.encoders.category import category_key
from ringfence.models.encoders.scale import Scale

__all__ = ["TextEncoder", "TokensEncoder"]

WORD = re.compile(r"\w+")
MAX_TEXT_CHARS = 20_000  # of a longer text the beginning counts
MAX_TOKENS = 10_000  # of a longer list its first items count
MAX_BUCKETS = 4_096


@dataclass(frozen=True, slots=True)
class TextEncoder(Encoder):
    """Words counted in ``buckets`` columns by their hash, at unit length; how many; ``missing``.

    An empty text is not missing: it has no words. Words that training never saw are counted like
    all others.
    """

    buckets: int
    length: Scale
    options: ClassVar[Mapping[str, Any]] = {"buckets": 32}

    @classmethod
    def fit(cls, values: Values, buckets: int = 32) -> Self:
        """Measure the logarithm of the number of words.

        >>> TextEncoder.fit(["to be", "or not"], buckets=2).transform(["or or"]).tolist()
        [[0.0, 1.0, 0.0, 0.0]]
        """
        if not 1 <= buckets <= MAX_BUCKETS:
            raise EncoderRefused(f"{buckets} buckets; 1 to {MAX_BUCKETS} are possible")
        counts = [cls._tokens(value) for value in plain_values(values)]
        return cls(buckets, Scale.fit(_log_lengths(counts)))

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        return cls(facts["buckets"], Scale.restore(facts["length"]))

    def facts(self) -> dict[str, Any]:
        """Return the number of columns and the scale of the length."""
        return {"buckets": self.buckets, "length": self.length.facts()}

    @property
    def names(self) -> tuple[str, ...]:
        """The buckets, the length and missing."""
        return (*(f"bucket {place}" for place in range(self.buckets)), "length", MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, buckets + 2]; squares are whole numbers: their sum has one value."""
        token_lists = [self._tokens(value) for value in plain_values(values)]
        flat = [
            row * self.buckets + zlib.crc32(token) % self.buckets
            for row, tokens in enumerate(token_lists)
            for token in tokens or ()
        ]
        size = len(token_lists) * self.buckets
        counts = np.bincount(np.array(flat, np.int64), minlength=size).reshape(-1, self.buckets)
        norm = np.sqrt(np.maximum((counts * counts).sum(axis=1), 1).astype(np.float64))
        unit = counts / norm[:, None]
        absent = np.array([tokens is None for tokens in token_lists], np.bool_)
        return np.column_stack([unit, self.length.apply(_log_lengths(token_lists)), absent]).astype(
            np.float32
        )

    @staticmethod
    def _tokens(value: Any) -> list[bytes] | None:
        """The words of a text as bytes; None where the value is no text."""
        if not isinstance(value, str):
            return None
        words: list[str] = WORD.findall(value[:MAX_TEXT_CHARS].lower())
        return [word.encode("utf-8", "replace") for word in words]


@dataclass(frozen=True, slots=True)
class TokensEncoder(TextEncoder):
    """A list of texts or ids: each item is one token, whatever it contains."""

    @staticmethod
    def _tokens(value: Any) -> list[bytes] | None:
        if not isinstance(value, list | tuple | np.ndarray):
            return None
        keys = [category_key(item) for item in plain_values(value[:MAX_TOKENS])]
        return [key.encode("utf-8", "replace") for key in keys if key is not None]


def _log_lengths(token_lists: list[list[bytes] | None]) -> NDArray[np.float64]:
    lengths = [np.nan if tokens is None else float(len(tokens)) for tokens in token_lists]
    return np.log1p(np.array(lengths, np.float64))
