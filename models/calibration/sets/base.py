"""What a calibration set is: which nodes of known class calibrate the runs of a model.

The calibration nodes of the training are always there to choose from. Evaluated nodes whose class
becomes known can join them; they are known by the run that evaluated them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.bands import EXPECTED_IN_LIVING_SETS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class CalibrationSetKind(ABC):
    """One calibration set as the registry offers it.

    name: in the configuration and on record · uses_recent_labels: nodes that become known later
    join it; the coverage distribution of several runs together then changes, and no theorem covers
    every single node. If False, only the training's calibration nodes are used · settings: settings
    of `[conformal]` that only this set uses · band_nodes: over the smallest alpha, calibration
    nodes that a band of degrees is expected to hold.
    """

    name: ClassVar[str]
    uses_recent_labels: ClassVar[bool] = True
    settings: ClassVar[tuple[str, ...]] = ()
    band_nodes: ClassVar[float] = EXPECTED_IN_LIVING_SETS

    def nodes_to_read(self, window_nodes: int) -> int | None:
        """Return how many of the newest joined nodes can be chosen; None: all of them."""
        return None

    def choose(
        self,
        evaluated_in: Ints,
        draw: Callable[[], Floats],
        window_nodes: int,
        classes: Ints,
        promised: Ints,
    ) -> Mask:
        """Return which nodes of known class calibrate the next run [n]: all of them.

        Args:
            evaluated_in: number of the run that evaluated each node, 0 for the training split [n].
            draw: draws one uniform number per node [n].
            window_nodes: how many nodes a window holds.
            classes: the nodes' classes [n].
            promised: classes that have a promise of their own.
        """
        return np.ones(len(evaluated_in), np.bool_)

    def describe_nodes(self, window_nodes: int) -> str:
        """Return which nodes calibrate a run."""
        return "all of known class"

    @abstractmethod
    def describe_training(self, window_nodes: int, calibration: int) -> str:
        """Say which nodes calibrate later runs; `calibration` nodes were set aside in training."""

    def is_short(self, calibration: int, window_nodes: int) -> bool:
        """Return whether fewer nodes calibrate than the set could hold."""
        return False
