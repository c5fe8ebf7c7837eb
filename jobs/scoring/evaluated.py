"""Which nodes of the mirror have been evaluated: SQL knows, the mirror remembers."""

from __future__ import annotations

from ringfence.connector.mirror import Mirror
from ringfence.connector.store import predictions
from ringfence.connector.store.models import members
from ringfence.jobs.project.workspace import Workspace


def mark_evaluated(workspace: Workspace, mirror: Mirror) -> None:
    """Bring the mirror's flags up to what SQL has decided since the mirror was saved."""
    rows = mirror.find(predictions.evaluated_keys(workspace.store, workspace.project, mirror.seq))
    mirror.evaluated[rows[rows >= 0]] = True


def mark_members(workspace: Workspace, mirror: Mirror, version: str) -> None:
    """Close the model's own labelled nodes; once per model and mirror, however many they are."""
    if mirror.members_of == version:
        return
    keys = [one.node_key for one in members(workspace.store, workspace.project, version)]
    rows = mirror.find(keys)
    mirror.evaluated[rows[rows >= 0]] = True
    mirror.members_of = version
