"""`calibration_set = "window"`: the newest `window_nodes` of known class.

`models.calibration.window` says which nodes are the newest, and that each promised class keeps
enough of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from ringfence.models.calibration.sets.base import CalibrationSetKind, Floats, Ints, Mask
from ringfence.models.calibration.window import newest, newest_with_classes

__all__ = ["WINDOW", "WindowSet"]


class WindowSet(CalibrationSetKind):
    """Old nodes leave as new ones join."""

    name = "window"
    settings = ("window_nodes",)

    def nodes_to_read(self, window_nodes: int) -> int | None:
        """Return as many as the window holds."""
        return window_nodes

    def choose(
        self,
        evaluated_in: Ints,
        draw: Callable[[], Floats],
        window_nodes: int,
        classes: Ints,
        promised: Ints,
    ) -> Mask:
        """Return the newest nodes, and enough of each promised class."""
        if not len(promised):
            return newest(evaluated_in, draw(), window_nodes)
        return newest_with_classes(evaluated_in, draw(), window_nodes, classes, promised)

    def describe_nodes(self, window_nodes: int) -> str:
        """Say that the newest nodes calibrate."""
        return f"the newest {window_nodes:,} of known class"

    def describe_training(self, window_nodes: int, calibration: int) -> str:
        """Say that the newest nodes calibrate, and how many there are if the window is not full."""
        so_far = f" ({calibration:,} so far)" if calibration < window_nodes else ""
        return f"the newest {window_nodes:,} nodes of known class calibrate{so_far}"

    def is_short(self, calibration: int, window_nodes: int) -> bool:
        """Return whether the window is not full yet."""
        return calibration < window_nodes


WINDOW = WindowSet()
