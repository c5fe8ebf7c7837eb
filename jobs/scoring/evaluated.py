"""Which nodes of the mirror have been evaluated: SQL knows, the mirror remembers."""

from __future__ import annotations

import numpy as np

from ringfence.connector.mirror import Mirror
from ringfence.connector.store import predictions
from ringfence.connector.store.models import members
from ringfence.jobs.project.workspace import Workspace

_UNRECORDED = -(2**63)  # stands for a creation time that the record lacks


def mark_evaluated(workspace: Workspace, mirror: Mirror) -> None:
    """Bring the mirror's flags up to what SQL has decided since the mirror was saved."""
    for keys in predictions.evaluated_blocks(workspace.store, workspace.project, mirror.seq):
        rows = mirror.find(keys)
        mirror.evaluated[rows[rows >= 0]] = True


def mark_members(workspace: Workspace, mirror: Mirror, version: str) -> None:
    """Close the model's own labelled nodes; once per model and mirror, however many they are.

    A node that has a member's key and another creation time is another node, and stays open.
    """
    if mirror.members_of == version:
        return
    known = members(workspace.store, workspace.project, version)
    rows = mirror.find([one.node_key for one in known])
    recorded = [_UNRECORDED if one.created_ns is None else one.created_ns for one in known]
    times = np.array(recorded, np.int64)
    same = (times == _UNRECORDED) | (mirror.created_ns[rows] == times)
    mirror.evaluated[rows[(rows >= 0) & same]] = True
    mirror.members_of = version
