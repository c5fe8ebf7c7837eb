"""Numbers and integers: standardised, capped, and whether there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import Values, plain_values
from ringfence.models.encoders.scale import Scale, ScaledEncoder

__all__ = ["NumberEncoder", "numbers_of"]


@dataclass(frozen=True, slots=True)
class NumberEncoder(ScaledEncoder):
    """Two columns: the number, 0 where there is none, and ``missing``.

    NaN is missing; an infinite number is a very large one. Option ``scale``: "standard", or "none"
    for numbers that have a scale already.
    """

    unit = "value"
    options: ClassVar[Mapping[str, Any]] = {"scale": "standard"}

    @classmethod
    def fit(cls, values: Values, scale: str = "standard") -> Self:
        """Measure mean, spread and skewness.

        >>> NumberEncoder.fit([1.0, 3.0, None]).transform([3.0, None]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return cls(Scale.fit(numbers_of(values), standardise=scale != "none"))

    @staticmethod
    def read_numbers(values: Values) -> NDArray[np.float64]:
        """Return the values as numbers [n]."""
        return numbers_of(values)


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
