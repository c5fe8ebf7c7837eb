"""Standardised numbers: mean and spread of training nodes, a logarithm where they are skewed."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import CAP, MISSING, Encoder, Float32s, Values

__all__ = ["Scale", "ScaledEncoder"]

Floats = NDArray[np.float64]

TAIL = 0.001  # share of training values at each end that is pulled in before measuring
MIN_SKEWNESS = 2.0  # from here on a logarithm is tried
MAX_PLAIN_NUMBER = 1e6  # of a column that is not standardised


@dataclass(frozen=True, slots=True)
class Scale:
    """(value - mean) / spread, capped; first sign(v) log(1 + |v|) if `log`."""

    mean: float
    spread: float
    log: bool = False
    cap: float = CAP

    @classmethod
    def fit(cls, values: Floats, standardise: bool = True) -> Self:
        """Measure the values that are finite; those of the outermost per mille count as its edge.

        They are sorted first: the order in which nodes were read changes no bit.

        >>> Scale.fit(np.array([1.0, 3.0, np.nan])).mean
        2.0
        """
        finite = np.sort(values[np.isfinite(values)])
        if not standardise:
            return cls(0.0, 1.0, cap=MAX_PLAIN_NUMBER)
        if not len(finite):
            return cls(0.0, 1.0)
        low, high = np.quantile(finite, [TAIL, 1 - TAIL], method="nearest")
        held = np.clip(finite, low, high)
        logs = _log(held)
        log = bool(_skewness(held) > MIN_SKEWNESS and _skewness(logs) < _skewness(held))
        mean, spread = _moments(logs if log else held)
        return cls(mean, spread, log)

    def apply(self, values: Floats) -> NDArray[np.float32]:
        """Return the scaled values [n]: 0 for NaN, the cap for what is infinite."""
        wide = np.ascontiguousarray(values, np.float64)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            shifted = ((_log(wide) if self.log else wide) - self.mean) / self.spread
        held = np.clip(shifted, -self.cap, self.cap)
        return np.where(np.isnan(held), 0.0, held).astype(np.float32)

    def facts(self) -> dict[str, Any]:
        """Return the scale as JSON takes it."""
        return asdict(self)

    @classmethod
    def restore(cls, facts: Mapping[str, Any]) -> Self:
        """Return the scale that `facts` were taken from."""
        return cls(**facts)


@dataclass(frozen=True, slots=True)
class ScaledEncoder(Encoder):
    """Two columns: a standardised number, 0 where a value has none, and ``missing``.

    unit: what the number is called in names of columns.
    """

    scale: Scale
    unit: ClassVar[str]

    @staticmethod
    @abstractmethod
    def read_numbers(values: Values) -> Floats:
        """Return the number of each value [n]; NaN where it has none."""

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        return cls(Scale.restore(facts))

    def facts(self) -> dict[str, Any]:
        """Return the scale."""
        return self.scale.facts()

    @property
    def names(self) -> tuple[str, ...]:
        """The number and missing."""
        return (self.unit, MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, 2]."""
        return self.encode_numbers(self.read_numbers(values))

    def encode_numbers(self, numbers: Floats) -> Float32s:
        """Return numbers as [n, 2]; NaN is missing."""
        return np.column_stack([self.scale.apply(numbers), np.isnan(numbers)]).astype(np.float32)


def _log(values: Floats) -> Floats:
    return np.copysign(np.log1p(np.abs(values)), values)


def _moments(values: Floats) -> tuple[float, float]:
    """Mean and spread; numbers as large as 1e300 are measured in units of the largest."""
    unit = float(np.abs(values).max()) or 1.0
    mean = float((values / unit).mean())
    spread = float((values / unit).std())
    spread = spread * unit if spread > 1e-12 else 0.0  # below: rounding of a constant
    return mean * unit, spread if spread > 0 and math.isfinite(1.0 / spread) else 1.0


def _skewness(values: Floats) -> float:
    mean, spread = _moments(values)
    with np.errstate(over="ignore"):
        skewness = float(np.mean(((values - mean) / spread) ** 3))
    return abs(skewness) if math.isfinite(skewness) else math.inf
