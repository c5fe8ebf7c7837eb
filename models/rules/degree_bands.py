"""`rule = "auto"`: nodes are compared within bands of degree.

Right whether nodes or edges arrive in exchangeable order; `models.conformal.bands` says why.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.bands import band_strata, cut_degrees, cut_degrees_of_part
from ringfence.models.conformal.class_strata import class_band_strata
from ringfence.models.conformal.strata import Stratum
from ringfence.models.rules.base import NodeDegrees, Part, Promise, Rule, weigh_strata

__all__ = ["DEGREE_BANDS", "DegreeBands"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class DegreeBands(Rule):
    """Bands of degree, cut from the degrees of all nodes; inside a class or part that is large."""

    name = "auto"
    within = "within bands of degree"
    uses_bands = True

    def strata(
        self, promise: Promise, degrees: NodeDegrees, drift: Floats | None = None
    ) -> list[Stratum]:
        """Return one stratum per band that holds due nodes."""
        alpha, known = min(promise.alphas), len(degrees.calibration)
        lows = cut_degrees(degrees.counts, known, alpha, promise.band_nodes)
        return weigh_strata(band_strata(lows, degrees.calibration, degrees.due, alpha), drift)

    def class_strata(
        self,
        promise: Promise,
        degrees: NodeDegrees,
        classes: Ints,
        alphas: Floats,
        drift: Floats | None = None,
    ) -> list[Stratum]:
        """Return one stratum per class and cell of degrees that holds due nodes."""
        strata = class_band_strata(
            degrees.counts, degrees.calibration, degrees.due, classes, alphas, promise.band_nodes
        )
        return weigh_strata(strata, drift)

    def part_strata(
        self,
        promise: Promise,
        degrees: NodeDegrees,
        part: Part,
        drift: Floats | None = None,
    ) -> list[Stratum]:
        """Return one stratum per band of the part, cut for as many calibration nodes as it has."""
        members, alpha = np.flatnonzero(part.calibration), min(promise.alphas)
        lows = cut_degrees_of_part(degrees.counts, len(members), alpha, promise.band_nodes)
        strata = band_strata(lows, degrees.calibration[members], degrees.due[part.due], alpha)
        inside = [
            Stratum(
                part.name_of_band(stratum.band),
                members[stratum.calibration],
                part.due[stratum.due],
            )
            for stratum in strata
        ]
        return weigh_strata(inside, drift)


DEGREE_BANDS = DegreeBands()
