"""True and False: 1 and -1, with 0 and a column of its own for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import MISSING, Encoder, Float32s, Values, plain_values

__all__ = ["BooleanEncoder", "is_boolean_text"]

TRUE, FALSE = ("true", "yes", "y", "t", "on"), ("false", "no", "n", "f", "off")
SIGNS = dict.fromkeys(TRUE, 1.0) | dict.fromkeys(FALSE, -1.0)


@dataclass(frozen=True, slots=True)
class BooleanEncoder(Encoder):
    """Two columns: 1, -1 or 0, and ``missing``; nothing is fitted.

    Option ``text``: "true", "yes", "y", "t", "on" and their opposites count too, otherwise texts
    are missing.
    """

    text: bool = False
    options: ClassVar[Mapping[str, Any]] = {"text": False}

    @classmethod
    def fit(cls, values: Values, text: bool = False) -> Self:
        """Return the encoder; it is the same for all values.

        >>> BooleanEncoder.fit([]).transform([True, False, None]).tolist()
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
        """
        return cls(text)

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder."""
        return cls(bool(facts.get("text", False)))

    def facts(self) -> dict[str, Any]:
        """Nothing is fitted; whether texts count, where they do."""
        return {"text": True} if self.text else {}

    @property
    def names(self) -> tuple[str, ...]:
        """Value and missing."""
        return ("value", MISSING)

    def transform(self, values: Values) -> Float32s:
        """Return [n, 2]."""
        signs = [self._sign(value) for value in plain_values(values)]
        sign = np.array(signs, np.float32).reshape(-1)
        return np.column_stack([sign, sign == 0]).astype(np.float32)

    def _sign(self, value: Any) -> float:
        if isinstance(value, bool):
            return 1.0 if value else -1.0
        return (
            SIGNS.get(value.strip().lower(), 0.0) if self.text and isinstance(value, str) else 0.0
        )


def is_boolean_text(value: str) -> bool:
    """Whether a text says true or false.

    >>> is_boolean_text("Yes"), is_boolean_text("maybe")
    (True, False)
    """
    return value.strip().lower() in SIGNS
