"""What an encoder is: fitted on the values of training nodes, then values in, float32 rows out.

The rules that every encoder keeps, and that the tests run on each of them:

- a missing value (None, NaN, a value of a type that the kind can't use) sets the column
  ``missing``; a value that training never saw is something else;
- no input gives a number that is not finite, or one beyond ``CAP`` standard deviations;
- a row has the same bits alone and among others;
- its state is JSON and arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["CAP", "MISSING", "Encoder", "EncoderRefused", "Values", "plain_values"]

Float32s = NDArray[np.float32]
Values = Sequence[Any] | NDArray[Any]

CAP = 10.0  # standard deviations that a number may be away from the mean of training
MISSING = "missing"


class EncoderRefused(ValueError):
    """An encoder, or one of its options, can't be used; the message says why."""


class Encoder(ABC):
    """Turns one column into numbers. A user's own encoder is a subclass, named by its dotted path.

    Its kind in the configuration is then ``package.module:Class``.
    """

    #: Options of `fit` with their defaults.
    options: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    @abstractmethod
    def fit(cls, values: Values, *args: Any, **options: Any) -> Self:
        """Return an encoder fitted on the values of training nodes, None among them."""

    @classmethod
    @abstractmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the encoder that `facts` and `arrays` were taken from."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what was fitted, as JSON takes it."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was fitted and is too long for JSON, by name."""
        return {}

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the output columns; as many as `transform` gives."""

    @abstractmethod
    def transform(self, values: Values) -> Float32s:
        """Return the values as numbers, float32 [n, width]."""


def plain_values(values: Values) -> list[Any]:
    """Return values as a list of Python's own types; a row of a matrix becomes a list.

    >>> plain_values(np.array([1, 2]))
    [1, 2]
    """
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
