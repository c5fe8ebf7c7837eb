"""Which nodes of the mirror have been evaluated: SQL knows, the mirror remembers."""

from __future__ import annotations

from ringfence.connector import runs
from ringfence.connector.mirror import Mirror
from ringfence.jobs.workspace import Workspace


def mark_evaluated(workspace: Workspace, mirror: Mirror) -> None:
    """Bring the mirror's flags up to what SQL has decided since the mirror was saved."""
    for key in runs.evaluated_keys(workspace.store, workspace.project, mirror.seq):
        if key in mirror.rows:
            mirror.evaluated[mirror.rows[key]] = True
