"""The conformal core: thresholds, p-values, prediction sets, and what they are computed from.

>>> from ringfence.models.conformal import threshold
>>> float(threshold([0.1, 0.5, 0.9], alpha=0.5))
0.5
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.models.conformal.sets import (
        fill_empty,
        p_values,
        prediction_sets,
        sets_from_p_values,
        threshold,
    )

__all__ = ["fill_empty", "p_values", "prediction_sets", "sets_from_p_values", "threshold"]


def __getattr__(name: str) -> Any:
    """Import the functions when they are asked for: the guarantee's law needs no torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("ringfence.models.conformal.sets"), name)
