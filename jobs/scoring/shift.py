"""Before any class is known: are the nodes of a run like those that it is calibrated with?

Degree, top probability and entropy are compared within what the rule accounts for
(`models.calibration.comparison`). What is found stands in the run's column `shift`:

    {"compared": [{"name": "degree", "calibration": 4.0, "due": 9.0, "distance": 0.4, "p": 0.002}],
     "level": 0.01, "sentence": "the nodes scored in this run differ from ...",
     "weights": {"effective": 310.2, "nodes": 500, "largest": 20.0}}

`weights` is there under `weights = "shift"` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.calibration.comparison import (
    LEVEL,
    compare_nodes,
    compared_strata,
    describe_differences,
)
from ringfence.models.conformal.evaluate import NodeDegrees
from ringfence.models.conformal.strata import Stratum
from ringfence.models.guarantee.law import effective_sample_size

Floats = NDArray[np.float64]
MIN_DUE_NODES = 5
"""Fewer due nodes are not compared: no test could tell them apart at the level."""


def compare_with_calibration(
    quantities: Mapping[str, Floats],
    degrees: NodeDegrees,
    strata: Sequence[Stratum],
    seed: int,
    weighted: bool,
) -> dict[str, Any]:
    """Return the column `shift` of a run.

    Args:
        quantities: name -> values at the calibration nodes and then at the due nodes [n + m].
        degrees: of the same nodes.
        strata: who judged whom; nothing is compared where there are none (a promise per class,
            whose calibration nodes may have other shares of classes than all nodes).
        seed: of the permutations.
        weighted: whether calibration nodes are weighted by the shift of degrees.
    """
    n = len(degrees.calibration)
    found = []
    if strata and len(degrees.due) >= MIN_DUE_NODES:
        whole = {"degree": np.concatenate([degrees.calibration, degrees.due]), **quantities}
        found = compare_nodes(
            {name: values[:n] for name, values in whole.items()},
            {name: values[n:] for name, values in whole.items()},
            *compared_strata(strata, degrees.calibration, degrees.due),
            seed=seed,
        )
    column: dict[str, Any] = {
        "level": LEVEL,
        "sentence": describe_differences(found),
        "compared": [
            {
                "name": one.name,
                "calibration": one.calibration,
                "due": one.due,
                "distance": one.distance,
                "p": one.p_value,
            }
            for one in found
        ],
    }
    if weighted:
        weights = strata[0].weights
        column["weights"] = {
            "effective": 0.0 if weights is None else effective_sample_size(weights),
            "nodes": n,
            "largest": 0.0 if weights is None or not n else float(weights.max()),
        }
    return column


def describe_shift(column: Mapping[str, Any]) -> list[str]:
    """Return notes of the run: what differs, and what weights leave of the calibration."""
    notes = [str(column["sentence"])] if column["sentence"] else []
    weights = column.get("weights")
    if weights:
        notes.append(
            f"calibration nodes are weighted by degree as due nodes have it: worth "
            f"{weights['effective']:.4g} of {weights['nodes']} (approximate; what chose the known "
            "nodes must show in their degree)"
        )
    return notes
