"""Compares the nodes of a run with its calibration nodes, before any class is known.

Degree, top probability, entropy and the nodes' own columns are compared within what the rule
accounts for (`models.calibration.comparison`). What is found stands in the run's column `shift`:

    {"compared": [{"name": "degree", "calibration": 4.0, "due": 9.0, "distance": 0.4, "p": 0.002}],
     "level": 0.01, "sentence": "the nodes scored in this run differ from ...",
     "weights": {"effective": 310.2, "nodes": 500, "largest": 20.0}}

`weights` is there under `weights = "shift"` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.project.columns.column_encoders import (
    PlainNetwork,
    TypedNetwork,
    network_of,
)
from ringfence.jobs.project.model_files import SavedModel
from ringfence.models.calibration.comparison import (
    LEVEL,
    ComparedColumn,
    compare_nodes,
    compared_strata,
    describe_differences,
)
from ringfence.models.conformal.evaluate import NodeDegrees
from ringfence.models.conformal.strata import Stratum
from ringfence.models.guarantee.law import effective_sample_size
from ringfence.models.schema import CLASSIFIED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_COLUMNS = 12
"""Columns that are compared besides degree, top probability and entropy: the first by name."""

CALENDAR = ("date", "datetime", "time")
"""Kinds of columns that are not compared: the nodes of one run are of one time by nature."""
MIN_DUE_NODES = 5
"""Fewer due nodes are not compared: no test could tell them apart at the level."""


ColumnsAt = Callable[[Ints], list[ComparedColumn]]


def columns_to_compare(
    mapping: GraphMapping, model: SavedModel, mirror: Mirror, rows: Ints
) -> ColumnsAt:
    """Return what gives the own columns of some of the nodes `rows`, by their places there.

    Named numbers count one by one. A vector counts as its distance from the mean of the training
    nodes, in their spreads. With several labels each column of the classified label counts as one
    number made of what its encoder gives for it, a missing value included; dates and times are left
    out.
    """

    network = network_of(model)
    return lambda places: _columns_at(network, mapping, model, mirror, rows[places])


@singledispatch
def _columns_at(
    network: object, mapping: GraphMapping, model: SavedModel, mirror: Mirror, at: Ints
) -> list[ComparedColumn]:
    """Return the own columns of some rows of the mirror."""
    raise TypeError(network)


@_columns_at.register(PlainNetwork)
def _plain_columns(
    _network: PlainNetwork, mapping: GraphMapping, model: SavedModel, mirror: Mirror, at: Ints
) -> list[ComparedColumn]:
    features = np.nan_to_num(mirror.features[at].astype(np.float64))
    names = mapping.classified.column_names
    if mapping.features_are_list:
        apart = (features - model.scaling.mean) / model.scaling.spread
        far = np.sqrt(np.mean(apart**2, axis=1)) if apart.shape[1] else np.zeros(len(at))
        name = f"{names[0]}, distance from the training nodes' mean"
        return [ComparedColumn(name, far)]
    by_name = sorted(range(len(names)), key=names.__getitem__)
    return [
        ComparedColumn(f"column {names[place]}", features[:, place])
        for place in by_name[:MAX_COLUMNS]
    ]


@_columns_at.register(TypedNetwork)
def _encoded_columns(
    network: TypedNetwork, _mapping: GraphMapping, _model: SavedModel, mirror: Mirror, at: Ints
) -> list[ComparedColumn]:
    encoders = network.encoders
    encoded = encoders.encode_own(mirror, CLASSIFIED, at).astype(np.float64)
    table, compared, start = encoders.tables[CLASSIFIED], [], 1  # behind the constant
    for name, encoder in table.encoders.items():
        part = encoded[:, start : start + len(encoder.names)]
        start += len(encoder.names)
        if table.choices[name].kind in CALENDAR:
            continue
        mixed = part @ np.arange(1.0, part.shape[1] + 1)  # a category's place, a number and a gap
        compared.append(ComparedColumn(f"column {name}", mixed, plain=False))
    return compared[:MAX_COLUMNS]


def _number(value: float) -> float | None:
    """A median as JSON takes it; None where a column has none."""
    return None if np.isnan(value) else value


def compare_with_calibration(
    quantities: Mapping[str, Floats],
    degrees: NodeDegrees,
    strata: Sequence[Stratum],
    seed: int,
    weighted: bool,
    columns: ColumnsAt | None = None,
) -> dict[str, Any]:
    """Return the column `shift` of a run.

    Args:
        quantities: name -> values at the calibration nodes and then at the due nodes [n + m].
        degrees: of the same nodes.
        strata: of the run; nothing is compared if there are none (a promise per class, whose
            calibration nodes may have other shares of classes than all nodes).
        seed: of the permutations.
        weighted: whether calibration nodes are weighted by the shift of degrees.
        columns: gives the nodes' own columns at places among calibration and due nodes [n + m].
    """
    n = len(degrees.calibration)
    differences = []
    if strata and len(degrees.due) >= MIN_DUE_NODES:
        whole = {"degree": np.concatenate([degrees.calibration, degrees.due]), **quantities}
        differences = compare_nodes(
            {name: values[:n] for name, values in whole.items()},
            {name: values[n:] for name, values in whole.items()},
            *compared_strata(strata, degrees.calibration, degrees.due),
            seed=seed,
            columns=None
            if columns is None
            else lambda ours, due: columns(np.append(ours, n + due)),
        )
    column: dict[str, Any] = {
        "level": LEVEL,
        "sentence": describe_differences(differences),
        "compared": [
            {
                "name": difference.name,
                "calibration": _number(difference.calibration),
                "due": _number(difference.due),
                "distance": difference.distance,
                "p": difference.p_value,
            }
            for difference in differences
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
