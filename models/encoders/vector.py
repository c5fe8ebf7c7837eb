"""Lists of numbers: of one length (each place a column), or of varying length (a summary)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import (
    CAP,
    MISSING,
    Encoder,
    EncoderRefused,
    Float32s,
    Values,
)
from ringfence.models.encoders.number import numbers_of
from ringfence.models.encoders.scale import MAX_PLAIN_NUMBER, Scale

__all__ = ["NumbersEncoder", "VectorEncoder"]

Floats = NDArray[np.float64]

FLOAT_BYTES = 4
MAX_WIDTH = 65_536
MAX_FIT_VALUE = 1e150  # larger numbers are measured as this one, so that squares stay finite
SUMMARY = ("length", "mean", "spread", "least", "largest")


@dataclass(frozen=True, slots=True, eq=False)
class VectorEncoder(Encoder):
    """Embeddings and other lists of one length: each place standardised, and ``missing``.

    Python lists, numpy rows, the driver's vectors, and byte arrays of little-endian float32. A list
    of another length, or one that holds something else than numbers, is missing as a whole. Option
    ``scale``: "standard" or "none".
    """

    mean: Floats
    spread: Floats
    cap: float
    options: ClassVar[Mapping[str, Any]] = {"scale": "standard"}

    @classmethod
    def fit(cls, values: Values, scale: str = "standard") -> Self:
        """Take the most frequent length and measure each place.

        >>> VectorEncoder.fit([[1.0, 4.0], [3.0, 4.0]]).transform([[3.0, 4.0], [1.0]]).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
        """
        rows = [_numbers(value) for value in values]
        lengths = Counter(len(row) for row in rows if row is not None)
        width = min(lengths, key=lambda length: (-lengths[length], length), default=0)
        if width > MAX_WIDTH:
            raise EncoderRefused(f"vectors of {width} numbers; {MAX_WIDTH} are the most")
        if scale == "none" or not rows:
            return cls(np.zeros(width), np.ones(width), MAX_PLAIN_NUMBER)
        return cls(*_measured(rows, width), CAP)

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts and arrays."""
        return cls(arrays["mean"], arrays["spread"], facts["cap"])

    def facts(self) -> dict[str, Any]:
        """Return the cap; the rest is in `arrays`."""
        return {"cap": self.cap}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Mean and spread of each place."""
        return {"mean": self.mean, "spread": self.spread}

    @property
    def names(self) -> tuple[str, ...]:
        """The places and missing."""
        return (*(str(place) for place in range(len(self.mean))), MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, places + 1]."""
        width = len(self.mean)
        out = np.zeros((len(values), width + 1), np.float32)
        for at, value in enumerate(values):
            row = _numbers(value)
            if row is None or len(row) != width:
                out[at, width] = 1.0
            else:
                with np.errstate(over="ignore"):
                    shifted = (row - self.mean) / self.spread
                out[at, :width] = np.clip(shifted, -self.cap, self.cap)
        return out


@dataclass(frozen=True, slots=True)
class NumbersEncoder(Encoder):
    """A list of numbers of any length: how many, mean, spread, least, largest; ``missing``.

    An empty list is not missing: its length is 0.
    """

    scales: tuple[Scale, ...]

    @classmethod
    def fit(cls, values: Values) -> Self:
        """Measure each part of the summary.

        >>> NumbersEncoder.fit([[1.0], [1.0, 2.0]]).names
        ('length', 'mean', 'spread', 'least', 'largest', 'missing')
        """
        columns = _summaries(values)
        return cls(tuple(Scale.fit(column) for column in columns.T))

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        return cls(tuple(Scale.restore(scale) for scale in facts["scales"]))

    def facts(self) -> dict[str, Any]:
        """Return the scales."""
        return {"scales": [scale.facts() for scale in self.scales]}

    @property
    def names(self) -> tuple[str, ...]:
        """The summary and missing."""
        return (*SUMMARY, MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, 6]."""
        summaries = _summaries(values)
        columns = [scale.apply(summaries[:, at]) for at, scale in enumerate(self.scales)]
        return np.column_stack([*columns, np.isnan(summaries[:, 0])]).astype(np.float32)


def _numbers(value: Any) -> Floats | None:
    """A list as float64; None where it isn't one, or holds what is no finite number."""
    if isinstance(value, bytes | bytearray):
        if len(value) % FLOAT_BYTES:
            return None
        row = np.frombuffer(value, "<f4").astype(np.float64)
    elif isinstance(value, np.ndarray | list | tuple):
        row = numbers_of(value)
    elif hasattr(value, "to_native"):  # the driver's Vector; its dates have none that is a list
        native = value.to_native()
        row = numbers_of(native) if isinstance(native, list) else np.array([np.nan])
    else:
        return None
    return row if row.ndim == 1 and np.isfinite(row).all() else None


def _measured(rows: list[Floats | None], width: int) -> tuple[Floats, Floats]:
    """Mean and spread of each place, in two walks over the rows."""
    usable = [row for row in rows if row is not None and len(row) == width]
    count = max(len(usable), 1)
    total, squares = np.zeros(width), np.zeros(width)
    for row in usable:
        total += np.clip(row, -MAX_FIT_VALUE, MAX_FIT_VALUE) / count
    for row in usable:
        squares += (np.clip(row, -MAX_FIT_VALUE, MAX_FIT_VALUE) - total) ** 2 / count
    spread = np.sqrt(squares)
    spread[~(spread > 1e-12 * np.maximum(np.abs(total), 1e-300))] = 1.0
    return total, spread


def _summaries(values: Values) -> Floats:
    """The summary of each list [n, 5]; NaN where a value is no list, or a part has no meaning."""
    out = np.full((len(values), len(SUMMARY)), np.nan)
    for at, value in enumerate(values):
        row = _numbers(value)
        if row is None:
            continue
        out[at, 0] = len(row)
        if len(row):
            with np.errstate(over="ignore", invalid="ignore"):
                out[at, 1:] = row.mean(), row.std(), row.min(), row.max()
    return out
