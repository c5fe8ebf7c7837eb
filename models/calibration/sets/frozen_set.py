"""`calibration_set = "frozen"`: the calibration nodes of the training, for good; the paper's."""

from __future__ import annotations

from ringfence.models.calibration.sets.base import CalibrationSetKind
from ringfence.models.conformal.bands import EXPECTED_NODES

__all__ = ["FROZEN", "FrozenSet"]


class FrozenSet(CalibrationSetKind):
    """No node joins; the theorem about every node holds at a fixed level."""

    name = "frozen"
    uses_recent_labels = False
    band_nodes = EXPECTED_NODES

    def describe_training(self, window_nodes: int, calibration: int) -> str:
        """Say that no node joins."""
        return "the calibration nodes stay those of this training"


FROZEN = FrozenSet()
