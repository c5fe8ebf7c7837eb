"""NodeEx of the paper: nodes arrive in exchangeable order, all are compared with all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import Stratum, one_stratum
from ringfence.models.rules.base import NodeDegrees, Promise, Rule

__all__ = ["NODE_EX", "NodeEx"]


class NodeEx(Rule):
    """All calibration nodes have equal weight, whatever the degree of the node that they judge."""

    name = "NodeEx"
    within = "by NodeEx"
    assumes = "node"
    monitored_by_degree = False

    def strata(
        self, promise: Promise, degrees: NodeDegrees, drift: NDArray[np.float64] | None = None
    ) -> list[Stratum]:
        """Return a single stratum."""
        return one_stratum(len(degrees.calibration), len(degrees.due), drift)


NODE_EX = NodeEx()
