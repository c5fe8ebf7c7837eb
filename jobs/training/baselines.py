"""What a model has to beat on the same nodes: largest class, own columns, own and one-hop columns.

The last two are boosted trees on the columns of the mirror: raw where a project has one label,
encoded as the network takes them where it has several. Trees see the classes of the nodes that the
network trained and stopped on, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.typed import TypedMirror
from ringfence.jobs.lifecycle.comparison import LARGEST_CLASS, ONE_HOP, OWN_COLUMNS
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import edge_index
from ringfence.jobs.project.typed_inputs import MANIFEST_KEY, TypedEncoders
from ringfence.jobs.project.workspace import Workspace
from ringfence.models.baselines.boosted_trees import largest_class, tree_chances
from ringfence.models.baselines.one_hop import neighbour_columns
from ringfence.models.comparison.outcome import Outcome
from ringfence.models.schema import CLASSIFIED, Channel, TypedSchema

Ints = NDArray[np.int64]
Table = NDArray[np.float32]
NO_COLUMNS = 0


@dataclass(frozen=True, slots=True)
class Learnt:
    """The nodes that a version learnt from: rows of the mirror, and classes by their place."""

    rows: Ints
    truth: Ints


def baseline_outcomes(
    workspace: Workspace,
    mirror: Mirror,
    model: SavedModel,
    learnt: Learnt,
    wanted: Ints,
    classes: int,
) -> tuple[list[Outcome], list[str]]:
    """Return what each baseline says of the rows `wanted`, and what it left out."""
    rows, cut = np.concatenate([learnt.rows, wanted]), len(learnt.rows)
    own, near = column_tables(workspace, mirror, model, rows)
    both = np.concatenate([own, near], axis=1)
    shares = largest_class(learnt.truth, classes, len(wanted))
    outcomes, notes = [Outcome(LARGEST_CLASS, shares)], []
    for name, table in ((OWN_COLUMNS, own), (ONE_HOP, both)):
        fitted = tree_chances(table[:cut], learnt.truth, table[cut:], classes)
        outcomes.append(Outcome(name, fitted.chances))
        notes += [f"{name}: {note}" for note in fitted.notes]
    return outcomes, notes


def column_tables(
    workspace: Workspace, mirror: Mirror, model: SavedModel, rows: Ints
) -> tuple[Table, Table]:
    """Return own columns [n, d] and those of the neighbours [n, k] of some nodes."""
    if mirror.typed is not None:
        return _typed_tables(mirror.typed, model, rows)
    source, target = edge_index(mirror, workspace.mapping)
    place, neighbour = _ends_at(rows, target, source, mirror.size)
    others, at = np.unique(neighbour, return_inverse=True)
    near = neighbour_columns(place, at, _plain(mirror.features[others]), len(rows))
    return _plain(mirror.features[rows]), near


def _typed_tables(typed: TypedMirror, model: SavedModel, rows: Ints) -> tuple[Table, Table]:
    """The same of several labels: the neighbours of each relationship type and direction apart."""
    facts = model.manifest[MANIFEST_KEY]
    encoders = TypedEncoders.restore(facts, model.weights)
    own = encoders.encode(typed, CLASSIFIED, rows)
    parts = [np.empty((len(rows), NO_COLUMNS), np.float32)]
    for channel in TypedSchema.from_json(facts["schema"]).channels:
        if channel.target == CLASSIFIED:
            place, neighbour = _ends_of(typed, channel, rows)
            others, at = np.unique(neighbour, return_inverse=True)
            table = encoders.encode(typed, channel.source, others)
            parts.append(neighbour_columns(place, at, table, len(rows)))
    return own, np.concatenate(parts, axis=1)


def _ends_of(typed: TypedMirror, channel: Channel, rows: Ints) -> tuple[Ints, Ints]:
    """Places in `rows` and neighbours of the relationships of one channel."""
    source, target, kind = typed.base.edges
    places, neighbours = [], []
    for code in channel.codes:
        mine = np.flatnonzero(kind == code // 2)
        receiving, sending = (target, source) if code % 2 else (source, target)
        place, neighbour = _ends_at(rows, receiving[mine], sending[mine], typed.size)
        places.append(place)
        neighbours.append(neighbour)
    return np.concatenate(places), np.concatenate(neighbours)


def _ends_at(rows: Ints, receiving: Ints, sending: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Of relationships whose receiving end is among `rows`: its place there, the other end."""
    position = np.full(nodes, -1, np.int64)
    position[rows] = np.arange(len(rows))
    inside = position[receiving] >= 0
    return position[receiving[inside]], np.asarray(sending[inside], np.int64)


def _plain(features: NDArray[np.float32]) -> Table:
    return np.ascontiguousarray(features, np.float32)
