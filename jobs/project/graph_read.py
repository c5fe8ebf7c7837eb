"""Read a project's graph into its mirror and save it."""

from __future__ import annotations

from ringfence.connector import mirror as mirrors
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.reader import SyncResult
from ringfence.connector.neo4j.read.sync import mirror_identity, sync_mirror
from ringfence.connector.progress import Progress
from ringfence.connector.store.first_seen import record_first_seen
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.workspace import Workspace


def read_graph(
    workspace: Workspace, writer: Writer | None, progress: Progress, *, whole: bool = False
) -> SyncResult:
    """Bring the mirror up to date.

    Where the graph has no creation times, the record gets when this run saw nodes first; without a
    writer nothing is recorded.
    """
    read = sync_mirror(workspace.reader(progress), whole=whole)
    if writer is not None:
        record_first_seen(writer, read.first_seen)
    return read


def load_graph(workspace: Workspace) -> Mirror | None:
    """Return the project's mirror as it was last saved, to read, also while a run writes."""
    return mirrors.open_shared(workspace.mirror, graph_identity(workspace))


def graph_identity(workspace: Workspace) -> str:
    """Return what a mirror of this project must belong to."""
    return mirror_identity(workspace.graph, workspace.mapping)


def save_graph(workspace: Workspace, mirror: Mirror) -> None:
    """Save the mirror."""
    mirrors.save(mirror, workspace.mirror)
