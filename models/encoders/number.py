"""Numbers and integers: standardised, capped, and whether there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import MISSING, Encoder, Float32s, Values, plain_values
from ringfence.models.encoders.scale import Scale

__all__ = ["NumberEncoder", "numbers_of"]


@dataclass(frozen=True, slots=True)
class NumberEncoder(Encoder):
    """Two columns: the number, 0 where there is none, and ``missing``.

    NaN is missing; an infinite number is a very large one. Option ``scale``: "standard", or "none"
    for numbers that have a scale already.
    """

    scale: Scale
    options: ClassVar[Mapping[str, Any]] = {"scale": "standard"}

    @classmethod
    def fit(cls, values: Values, scale: str = "standard") -> Self:
        """Measure mean, spread and skewness.

        >>> NumberEncoder.fit([1.0, 3.0, None]).transform([3.0, None]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return cls(Scale.fit(numbers_of(values), standardise=scale != "none"))

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        return cls(Scale.restore(facts))

    def facts(self) -> dict[str, Any]:
        """Return the scale."""
        return self.scale.facts()

    @property
    def names(self) -> tuple[str, ...]:
        """Value and missing."""
        return ("value", MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, 2]."""
        found = numbers_of(values)
        return np.column_stack([self.scale.apply(found), np.isnan(found)]).astype(np.float32)


def numbers_of(values: Values) -> NDArray[np.float64]:
    """Return values as float64 [n], NaN where one is no number; True and False are none.

    >>> numbers_of([1, 2.5, True, "3", None]).tolist()
    [1.0, 2.5, nan, nan, nan]
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and values.ndim == 1:
        return values.astype(np.float64)
    return np.fromiter(map(_number, plain_values(values)), np.float64, len(values))


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return math.nan
    try:
        return float(value)
    except (OverflowError, TypeError):  # an integer beyond all floats; a complex number
        return math.inf if isinstance(value, int) and value > 0 else _below(value)


def _below(value: Any) -> float:
    return -math.inf if isinstance(value, int) else math.nan
