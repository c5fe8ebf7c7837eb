"""`calibration_set = "growing"`: the training's nodes and all whose class became known since."""

from __future__ import annotations

from ringfence.models.calibration.sets.base import CalibrationSetKind

__all__ = ["GROWING", "GrowingSet"]


class GrowingSet(CalibrationSetKind):
    """Every node that joins stays."""

    name = "growing"

    def describe_training(self, window_nodes: int, calibration: int) -> str:
        """Say that known nodes join."""
        return "nodes whose class becomes known join the calibration"


GROWING = GrowingSet()
