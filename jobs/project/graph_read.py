"""Read a project's graph into its mirror and save it: one label, or several."""

from __future__ import annotations

from ringfence.connector import mirror as mirrors
from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.typed import save_typed
from ringfence.connector.neo4j.read.sync import Progress, SyncResult, sync_mirror
from ringfence.connector.neo4j.read.typed.sync import sync_typed
from ringfence.connector.store.first_seen import record_first_seen
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.workspace import Workspace


def read_graph(
    workspace: Workspace, writer: Writer, progress: Progress, *, whole: bool = False
) -> SyncResult:
    """Bring the mirror up to date; with several labels its `typed` part too.

    Where the graph has no creation times, the record gets when this run saw nodes first.
    """
    mapping = workspace.mapping.typed
    if mapping is None:
        return sync_mirror(workspace.reader(progress), whole=whole)
    found = sync_typed(workspace.typed_reader(mapping, progress), whole=whole)
    record_first_seen(writer, found.first_seen)
    found.read.mirror.typed = found.typed
    return found.read


def save_graph(workspace: Workspace, mirror: Mirror) -> None:
    """Save the mirror with all its parts."""
    if mirror.typed is None:
        mirrors.save(mirror, workspace.mirror)
    else:
        save_typed(mirror.typed, workspace.mirror)
