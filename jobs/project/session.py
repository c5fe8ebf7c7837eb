"""The write session: what every command that writes does before its own work, and after it.

One process at a time writes for a project. It holds the lease, makes sure that the audit store is
the one that the graph was written from, finishes runs that a crash left decided, does its work, and
stores the audit chain's newest entry in the graph (the anchor).

    with write_session(workspace, progress) as session:
        runs.decide(session.writer, decision)

`lease_session` is the part that leaves both stores as they are: for a preview, and for a migration,
before which the tables of the rest do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ringfence.connector import fault_points
from ringfence.connector.errors import StoreError
from ringfence.connector.neo4j.write import coverage_audits, fence, prediction_sets
from ringfence.connector.neo4j.write.fence import Anchor
from ringfence.connector.progress import Progress
from ringfence.connector.store import chain, coverage, runs
from ringfence.connector.store.audit_chain.signature import recorded_key
from ringfence.connector.store.lease import Lease, heartbeat
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.apply import recover
from ringfence.jobs.project.folders import move_old_files
from ringfence.jobs.project.workspace import Workspace

AUDITED_MARK = '"kind":"audited"'  # canonical JSON: no text inside a body can look like this


@dataclass(frozen=True, slots=True)
class Session:
    """An open write session: who writes, and the runs that were finished when it began."""

    writer: Writer
    recovered: tuple[int, ...]


@contextmanager
def write_session(
    workspace: Workspace,
    progress: Progress,
    require: Callable[[Workspace], None] = lambda _workspace: None,
) -> Iterator[Session]:
    """Hold the right to write to both stores, which agree when the block begins.

    `require` raises where the verb can't do its work: it is called before the lease is taken. If
    the block raises, storing the anchor is left to the next session.
    """
    workspace.require_migrated()
    require(workspace)
    with lease_session(workspace) as held:
        move_old_files(workspace.settings.engine.folder, workspace.project, workspace.store)
        writer = workspace.writer_with(held)
        recovered = recover(workspace, writer, progress)
        finish_earlier_entries(workspace, writer)
        yield Session(writer, recovered)
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
    """Refuse a chain that lacks the entry in the graph's anchor, or has another one there.

    The anchor is written after the entry, so it is never ahead of its store: a store that lacks the
    entry is older, or was truncated, emptied or rewritten.
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


def finish_earlier_entries(workspace: Workspace, writer: Writer) -> None:
    """Bring to the graph what sessions before this one left in SQL: coverage, then the anchor.

    An anchor that lacks entries of a session before the newest was set back: `verify` names it.
    """
    remembered = fence.read_anchor(workspace.graph, workspace.project)
    anchored = 0 if remembered is None else remembered.n
    with workspace.store.reading() as connection:
        newest = chain.newest_entry(connection, workspace.project)
        if newest is None or newest.n <= anchored or not chain.fits(newest, writer.key):
            return
        audited = chain.newest_containing(connection, workspace.project, AUDITED_MARK, anchored)
    if audited is not None:
        rows = coverage.stored(workspace.store, workspace.project)
        coverage_audits.write_coverage(workspace.graph, writer.lease, rows)
    anchor_newest_entry(workspace, writer.lease)


def anchor_newest_entry(workspace: Workspace, held: Lease) -> None:
    """Store the audit chain's newest entry in the graph (the anchor), unless it is there.

    The public key that packs are signed with stands beside it; entries that the anchor covers
    already are not searched for it again.
    """
    remembered = fence.read_anchor(workspace.graph, workspace.project)
    before = Anchor(0, "") if remembered is None else remembered
    with workspace.store.reading() as connection:
        head = chain.head(connection, workspace.project)
        if head is None or (remembered is not None and head[0] <= before.n):
            return
        key = recorded_key(connection, workspace.project, before.n)
    public = before.public_key if key is None else key.public
    fence.write_anchor(workspace.graph, held, Anchor(*head, public))
