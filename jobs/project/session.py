"""The write session: what every command that writes does before its own work, and after it.

One process at a time writes for a project. It holds the lease, makes sure that the audit store is
the one that the graph was written from, finishes runs that a crash left decided, does its work, and
lets the graph remember the audit chain's newest entry.

    with write_session(workspace, progress) as session:
        runs.decide(session.writer, decision)

`lease_session` is the part of it that leaves both stores as they are: for a preview, and for a
migration, before which the rest would not find its tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ringfence.connector import fault_points
from ringfence.connector.errors import StoreError
from ringfence.connector.neo4j.read.sync import Progress
from ringfence.connector.neo4j.write import fence, prediction_sets
from ringfence.connector.neo4j.write.fence import Anchor
from ringfence.connector.store import chain, runs
from ringfence.connector.store.lease import Lease, heartbeat
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.folders import move_old_files
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.apply import recover


@dataclass(frozen=True, slots=True)
class Session:
    """An open write session: who writes, and the runs that were finished when it began."""

    writer: Writer
    recovered: tuple[int, ...]


@contextmanager
def write_session(workspace: Workspace, progress: Progress) -> Iterator[Session]:
    """Hold the right to write to both stores, which agree when the block begins.

    Where the block raises, the chain's newest entry is left to the next session to remember.
    """
    workspace.require_migrated()
    with lease_session(workspace) as held:
        move_old_files(workspace.settings.engine.folder, workspace.project, workspace.store)
        writer = workspace.writer_with(held)
        yield Session(writer, recover(workspace, writer, progress))
        anchor_newest_entry(workspace, held)


@contextmanager
def lease_session(workspace: Workspace) -> Iterator[Lease]:
    """Hold the lease on a store that is not older than the graph; nothing else is written.

    It is renewed while the block works, however long a training takes.
    """
    with workspace.lease() as held, heartbeat(workspace.store, held):
        fault_points.reach("lease taken")
        refuse_older_store(workspace, held)
        yield held


def refuse_older_store(workspace: Workspace, held: Lease) -> None:
    """Refuse an audit store that was restored from a backup older than what the graph shows.

    Tokens alone don't tell: every attempt takes a new one, and would catch up. A run is decided in
    SQL before the graph shows it, so the run that SQL would decide next can't be there.
    """
    coming = runs.next_seq(workspace.store, workspace.project)
    if prediction_sets.has_run(workspace.graph, workspace.project, coming):
        raise StoreError(
            found=f"the graph shows run {coming}, which the audit store has never decided: the "
            "store is older than the graph",
            needed="the audit store that decided that run; scoring on would evaluate nodes twice",
            next_step="restore the newest backup of the audit store",
        )
    token = fence.fence_token(workspace.graph, workspace.project)
    if token > held.token:
        raise StoreError(
            found=f"the graph was written with lease {token}, but the audit store only knows of "
            f"{held.token}: it is older than the graph",
            needed="the audit store that decided those runs; scoring on would evaluate nodes twice",
            next_step="restore the newest backup of the audit store",
        )
    _refuse_other_chain(workspace)


def _refuse_other_chain(workspace: Workspace) -> None:
    """Refuse a chain that lacks the entry which the graph remembers, or has another one there.

    The graph's memory is written after the entry, so it is never ahead of the store that it is
    about: a store that lacks the entry is older, or was cut off, emptied or rewritten.
    """
    remembered = fence.read_anchor(workspace.graph, workspace.project)
    if remembered is None:
        return
    with workspace.store.reading() as connection:
        hash_ = chain.hash_at(connection, workspace.project, remembered.n)
    if hash_ == remembered.hash:
        return
    state = "does not have" if hash_ is None else "has another entry in the place of"
    raise StoreError(
        found=f"the graph remembers entry {remembered.n} of the audit chain, which the audit "
        f"store {state}: it is older than the graph, or someone changed one of the two",
        needed="the audit store that the graph was written from",
        next_step="ringfence verify, then restore the newest backup of the store "
        "(docs/reliability.md, Answers)",
    )


def anchor_newest_entry(workspace: Workspace, held: Lease) -> None:
    """Let the graph remember the audit chain's newest entry, unless it does already."""
    with workspace.store.reading() as connection:
        head = chain.head(connection, workspace.project)
    remembered = fence.read_anchor(workspace.graph, workspace.project)
    if head is not None and (remembered is None or remembered.n < head[0]):
        fence.write_anchor(workspace.graph, held, Anchor(*head))
