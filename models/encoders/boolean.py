"""True and False: 1 and -1, with 0 and a column of its own for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import MISSING, Encoder, Float32s, Values, plain_values

__all__ = ["BooleanEncoder"]


@dataclass(frozen=True, slots=True)
class BooleanEncoder(Encoder):
    """Two columns: 1, -1 or 0, and ``missing``; nothing is fitted."""

    @classmethod
    def fit(cls, values: Values) -> Self:
        """Return the encoder; it is the same for all values.

        >>> BooleanEncoder.fit([]).transform([True, False, None]).tolist()
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
        """
        return cls()

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder."""
        return cls()

    def facts(self) -> dict[str, Any]:
        """Nothing is fitted."""
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """Value and missing."""
        return ("value", MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, 2]."""
        signs = [
            (1.0 if value else -1.0) if isinstance(value, bool) else 0.0
            for value in plain_values(values)
        ]
        sign = np.array(signs, np.float32).reshape(-1)
        return np.column_stack([sign, sign == 0]).astype(np.float32)
