"""Numbers and integers: standardised, capped, and whether there is one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import Float32s, Values, plain_values
from ringfence.models.encoders.scale import Scale, ScaledEncoder

__all__ = ["NumberEncoder", "is_number_text", "numbers_of"]

NUMBER_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
MAX_NUMBER_CHARS = 60


@dataclass(frozen=True, slots=True)
class NumberEncoder(ScaledEncoder):
    """Two columns: the number, 0 where there is none, and ``missing``.

    NaN is missing; an infinite number is a very large one. Options ``scale``: "standard", or "none"
    for numbers that have a scale already; ``text``: texts such as "12.5" are numbers too, otherwise
    they are missing.
    """

    text: bool = False
    unit = "value"
    options: ClassVar[Mapping[str, Any]] = {"scale": "standard", "text": False}

    @classmethod
    def fit(cls, values: Values, scale: str = "standard", text: bool = False) -> Self:
        """Measure mean, spread and skewness.

        >>> NumberEncoder.fit([1.0, 3.0, None]).transform([3.0, None]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return cls(Scale.fit(numbers_of(values, text), standardise=scale != "none"), text)

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        scale = {name: value for name, value in facts.items() if name != "text"}
        return cls(Scale.restore(scale), bool(facts.get("text", False)))

    def facts(self) -> dict[str, Any]:
        """Return the scale, and whether texts are numbers where they are."""
        return self.scale.facts() | ({"text": True} if self.text else {})

    def transform(self, values: Values) -> Float32s:
        """Return [n, 2]."""
        return self.encode_numbers(numbers_of(values, self.text))

    @staticmethod
    def read_numbers(values: Values) -> NDArray[np.float64]:
        """Return the values as numbers [n]."""
        return numbers_of(values)


def numbers_of(values: Values, text: bool = False) -> NDArray[np.float64]:
    """Return values as float64 [n], NaN where one is no number; True and False are none.

    text: texts that are numbers count.

    >>> numbers_of([1, 2.5, True, "3", None]).tolist()
    [1.0, 2.5, nan, nan, nan]
    >>> numbers_of(["12.5", " -3e2 ", "12,5", "nan", 7], text=True).tolist()
    [12.5, -300.0, nan, nan, 7.0]
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and values.ndim == 1:
        return values.astype(np.float64)
    read = _number_or_text if text else _number
    return np.fromiter(map(read, plain_values(values)), np.float64, len(values))


def is_number_text(value: str) -> bool:
    """Whether a text is a number, with a decimal point or without.

    >>> is_number_text("-12.50"), is_number_text("1,5"), is_number_text("A7")
    (True, False, False)
    """
    return len(value) <= MAX_NUMBER_CHARS and NUMBER_TEXT.fullmatch(value.strip()) is not None


def _number_or_text(value: Any) -> float:
    if isinstance(value, str):
        return float(value) if is_number_text(value) else math.nan
    return _number(value)


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
