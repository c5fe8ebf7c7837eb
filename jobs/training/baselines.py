"""Baselines on the same nodes: largest class, boosted trees on own columns and on neighbours' too.

The last two are boosted trees on the columns of the mirror: raw where a project has one label,
encoded as the network takes them where it has several. Trees see the classes of the nodes that the
network trained and stopped on, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.jobs.lifecycle.comparison import LARGEST_CLASS, ONE_HOP, OWN_COLUMNS
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.network_family import family_of
from ringfence.models.baselines.boosted_trees import largest_class, tree_chances
from ringfence.models.comparison.outcome import Outcome

Ints = NDArray[np.int64]


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
    """Return each baseline's predictions of the rows `wanted`, and what it left out."""
    rows, cut = np.concatenate([learnt.rows, wanted]), len(learnt.rows)
    columns, near = family_of(workspace.mapping, mirror).column_tables(model, rows)
    both = np.concatenate([columns, near], axis=1)
    shares = largest_class(learnt.truth, classes, len(wanted))
    outcomes, notes = [Outcome(LARGEST_CLASS, shares)], []
    for name, table in ((OWN_COLUMNS, columns), (ONE_HOP, both)):
        fitted = tree_chances(table[:cut], learnt.truth, table[cut:], classes)
        outcomes.append(Outcome(name, fitted.chances))
        notes += [f"{name}: {note}" for note in fitted.notes]
    return outcomes, notes
