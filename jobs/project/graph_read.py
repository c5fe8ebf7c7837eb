"""Read a project's graph into its mirror and save it: one label, or several."""

from __future__ import annotations

from ringfence.connector import mirror as mirrors
from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.typed import load_typed, save_typed
from ringfence.connector.neo4j.read.sync import Progress, SyncResult, mirror_identity, sync_mirror
from ringfence.connector.neo4j.read.typed.sync import sync_typed, typed_identity
from ringfence.connector.store.first_seen import record_first_seen
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.workspace import Workspace


def read_graph(
    workspace: Workspace, writer: Writer | None, progress: Progress, *, whole: bool = False
) -> SyncResult:
    """Bring the mirror up to date; with several labels its `typed` part too.

    Where the graph has no creation times, the record gets when this run saw nodes first; without a
    writer nothing is recorded.
    """
    mapping = workspace.mapping.typed
    if mapping is None:
        return sync_mirror(workspace.reader(progress), whole=whole)
    found = sync_typed(workspace.typed_reader(mapping, progress), whole=whole)
    if writer is not None:
        record_first_seen(writer, found.first_seen)
    found.read.mirror.typed = found.typed
    return found.read


def load_graph(workspace: Workspace) -> Mirror | None:
    """Return the project's mirror as it was last saved, with all its parts."""
    mapping = workspace.mapping.typed
    if mapping is None:
        identity = mirror_identity(workspace.graph, workspace.mapping)
        return mirrors.load(workspace.mirror, identity)
    reader = workspace.typed_reader(mapping, lambda _what, _done, _all: None)
    typed = load_typed(workspace.mirror, typed_identity(reader), mapping)
    if typed is None:
        return None
    typed.base.typed = typed
    return typed.base


def save_graph(workspace: Workspace, mirror: Mirror) -> None:
    """Save the mirror with all its parts."""
    if mirror.typed is None:
        mirrors.save(mirror, workspace.mirror)
    else:
        save_typed(mirror.typed, workspace.mirror)
