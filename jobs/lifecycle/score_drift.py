"""How far the calibration scores of a model's runs have moved since its first run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.store.queries.records import MonitorState


@dataclass(frozen=True, slots=True)
class ScoreDistance:
    """How far a run's calibration scores lie from those of its model's first run."""

    seq: int
    decided_ns: int
    distance: float


def score_distances(states: Sequence[MonitorState]) -> list[ScoreDistance]:
    """Return the distance per run: the mean difference of quantiles, which is the EMD.

    >>> score_distances([MonitorState(1, 10, "m", (0.0, 1.0), None),
    ...                  MonitorState(2, 20, "m", (0.5, 1.5), None)])[1]
    ScoreDistance(seq=2, decided_ns=20, distance=0.5)
    """
    first_of_model: dict[str, NDArray[np.float64]] = {}
    distances = []
    for state in states:
        if state.calibration_scores:
            scores = np.array(state.calibration_scores)
            first = first_of_model.setdefault(state.model, scores)
            distance = float(np.abs(scores - first).mean())
            distances.append(ScoreDistance(state.seq, state.decided_ns, distance))
    return distances
