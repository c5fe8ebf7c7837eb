"""Calibration sets by the name that a configuration uses: one set, one file, one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.models.kind_registry import KindRegistry

if TYPE_CHECKING:
    from ringfence.models.calibration.sets.base import CalibrationSetKind

__all__ = ["CALIBRATION_SETS", "calibration_set_named"]

CALIBRATION_SETS: KindRegistry[CalibrationSetKind] = KindRegistry(
    "calibration set",
    {
        "window": "ringfence.models.calibration.sets.window_set:WINDOW",
        "growing": "ringfence.models.calibration.sets.growing_set:GROWING",
        "frozen": "ringfence.models.calibration.sets.frozen_set:FROZEN",
    },
)


def calibration_set_named(name: str) -> CalibrationSetKind:
    """Return the calibration set called ``name``.

    >>> calibration_set_named("frozen").uses_recent_labels
    False
    """
    return CALIBRATION_SETS.named(name)
