"""Points: their coordinates, each standardised."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import MISSING, Encoder, Float32s, Values
from ringfence.models.encoders.number import numbers_of
from ringfence.models.encoders.scale import Scale

__all__ = ["PointEncoder"]

NO_SYSTEM = 0  # a plain pair of numbers names no coordinate system
AXES = ("x", "y", "z")
LONGITUDE_AND_LATITUDE = ("longitude", "latitude", "height")


@dataclass(frozen=True, slots=True)
class PointEncoder(Encoder):
    """One column per coordinate, and ``missing``.

    A point of another coordinate system than most points of training is missing: its numbers would
    mean something else.
    """

    system: int
    scales: tuple[Scale, ...]

    @classmethod
    def fit(cls, values: Values) -> Self:
        """Find the coordinate system and measure each coordinate.

        >>> PointEncoder.fit([(0.0, 5.0), (2.0, 5.0)]).transform([(2.0, 5.0), None]).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
        """
        points = [_point(value) for value in values]
        kinds = Counter((system, len(at)) for system, at in points if at)
        system, axes = min(kinds, key=lambda kind: (-kinds[kind], kind), default=(NO_SYSTEM, 2))
        columns = _coordinates(points, system, axes)
        return cls(system, tuple(Scale.fit(column) for column in columns.T))

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder of these facts."""
        return cls(facts["system"], tuple(Scale.restore(scale) for scale in facts["scales"]))

    def facts(self) -> dict[str, Any]:
        """Return the coordinate system and the scales."""
        return {"system": self.system, "scales": [scale.facts() for scale in self.scales]}

    @property
    def names(self) -> tuple[str, ...]:
        """The axes and missing."""
        return (*AXES[: len(self.scales)], MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, axes + 1]."""
        points = [_point(value) for value in values]
        coordinates = _coordinates(points, self.system, len(self.scales))
        absent = np.isnan(coordinates).any(axis=1)
        coordinates[absent] = np.nan
        columns = [scale.apply(coordinates[:, axis]) for axis, scale in enumerate(self.scales)]
        return np.column_stack([*columns, absent]).astype(np.float32)


def _point(value: Any) -> tuple[int, tuple[float, ...]]:
    """Coordinate system and coordinates; none for what is no point."""
    if isinstance(value, Mapping):
        system = value.get("srid", NO_SYSTEM)
        named = AXES if "x" in value else LONGITUDE_AND_LATITUDE
        value = [value[name] for name in named if name in value]
    else:
        system = getattr(value, "srid", NO_SYSTEM)
    if not isinstance(value, list | tuple | np.ndarray) or len(value) not in (2, 3):
        return NO_SYSTEM, ()
    at = tuple(numbers_of(list(value)).tolist())
    usable = isinstance(system, int) and not any(map(math.isnan, at))
    return (system, at) if usable else (NO_SYSTEM, ())


def _coordinates(
    points: list[tuple[int, tuple[float, ...]]], system: int, axes: int
) -> NDArray[np.float64]:
    nowhere = (math.nan,) * axes
    rows = [
        at if point_system == system and len(at) == axes else nowhere for point_system, at in points
    ]
    return np.array(rows, np.float64).reshape(len(points), axes)
