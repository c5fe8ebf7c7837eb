"""All that a command works with: settings, the graph, the audit store; and the lease to write."""

from __future__ import annotations

import errno
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ringfence.connector.errors import FolderError
from ringfence.connector.mapping import GraphMapping, TypedMapping
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.neo4j.embedded import ServerInfo, find_running, running
from ringfence.connector.neo4j.embedded.jars import Progress
from ringfence.connector.neo4j.migrate import require_graph
from ringfence.connector.neo4j.read.sync import GraphReader
from ringfence.connector.neo4j.read.sync import Progress as ReadProgress
from ringfence.connector.neo4j.read.typed.reader import TypedReader
from ringfence.connector.store.engine import Store
from ringfence.connector.store.first_seen import find_first_seen
from ringfence.connector.store.lease import Lease, acquire, release, renew
from ringfence.connector.store.migrate import require_sql
from ringfence.connector.store.trail.keys import KeySource, current_key, settle_next_key
from ringfence.connector.store.writer import Writer
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.engines.registry import hold_engines
from ringfence.jobs.project.audit_store import key_source, open_audit, secret_text
from ringfence.jobs.project.folders import MIRROR, MODELS, SHADOW_TABLES, TABLES, project_folder

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open project."""

    settings: Settings
    mapping: GraphMapping
    graph: Graph
    store: Store

    @property
    def project(self) -> str:
        """Name of the project."""
        return self.settings.project

    @property
    def folder(self) -> Path:
        """Folder of what belongs to this project alone."""
        return project_folder(self.settings.engine.folder, self.project)

    @property
    def models(self) -> Path:
        """Folder of the trained models."""
        return self.folder / MODELS

    @property
    def mirror(self) -> Path:
        """Folder of the mirror."""
        return self.folder / MIRROR

    @property
    def tables(self) -> Path:
        """Folder of what the forward pass keeps between runs."""
        return self.folder / TABLES

    @property
    def shadow_tables(self) -> Path:
        """Folder of what the forward pass of a candidate keeps between runs."""
        return self.folder / SHADOW_TABLES

    def reader(self, progress: ReadProgress) -> GraphReader:
        """Return how this project reads its graph."""
        engine = self.settings.engine
        return GraphReader(
            self.graph,
            self.mapping,
            self.mirror,
            engine.read_rows,
            engine.overlap_seconds,
            progress,
            check_nodes=engine.check_nodes,
        )

    def typed_reader(self, mapping: TypedMapping, progress: ReadProgress) -> TypedReader:
        """Return how this project reads the several labels of its mapping."""
        engine = self.settings.engine
        return TypedReader(
            self.graph,
            mapping,
            self.mirror,
            engine.read_rows,
            engine.overlap_seconds,
            progress,
            check_nodes=engine.check_nodes,
            first_seen=lambda keys: find_first_seen(self.store, self.project, keys),
        )

    @contextmanager
    def lease(self) -> Iterator[Lease]:
        """Hold the project's lease for the length of a `with` block."""
        folder = self.settings.engine.folder
        held = acquire(self.store, self.project, _owner(), self.settings.engine.lease_seconds)
        try:
            yield held
        except OSError as error:
            if error.errno not in DISK_ERRORS:
                with self.store.transaction() as connection:
                    renew(self.store, connection, held)  # a successor may have removed the files
                raise
            raise FolderError(
                found=f"[engine] folder {folder} can't be written: {error.strerror}",
                needed="a disk with room for mirror, models and tables (see ringfence doctor)",
                next_step="make room and run again; nothing is lost",
            ) from error
        finally:
            release(self.store, held)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Hold the lease and the chain's key alone; commands open a `session.write_session`."""
        with self.lease() as held:
            yield self.writer_with(held)

    def writer_with(self, held: Lease) -> Writer:
        """Return who writes under a held lease; an interrupted rotation is settled first."""
        source = self.key_source
        with self.store.reading() as connection:
            settle_next_key(connection, self.project, source)
            return Writer(self.store, held, current_key(connection, self.project, source))

    @property
    def key_source(self) -> KeySource:
        """Where the audit chain's key may be."""
        return key_source(self.settings)

    def require_migrated(self) -> None:
        """Raise unless both stores are at this code's version."""
        require_sql(self.store)
        require_graph(self.graph)


@contextmanager
def open_workspace(
    settings: Settings, download: Callable[[Progress], None] | None = None
) -> Iterator[Workspace]:
    """Open graph and store; an embedded server that isn't running yet runs for the block."""
    with ExitStack() as stack:
        stack.enter_context(hold_engines())
        graph = stack.enter_context(open_graph(settings, download))
        store = stack.enter_context(open_audit(settings))
        yield Workspace(settings, settings.mapping(), graph, store)


@contextmanager
def open_graph(
    settings: Settings, download: Callable[[Progress], None] | None = None
) -> Iterator[Graph]:
    """Connect to the configured server, or to the project's embedded one."""
    neo4j = settings.neo4j
    with ExitStack() as stack:
        if neo4j.uri == "embedded":
            server = stack.enter_context(_embedded(settings.engine.folder / "neo4j", download))
            graph = connect(server.uri, server.user, server.password, neo4j.database, neo4j.tls)
        else:
            password = secret_text(neo4j.password)
            graph = connect(neo4j.uri, neo4j.user, password, neo4j.database, neo4j.tls)
        stack.callback(graph.close)
        yield graph


@contextmanager
def _embedded(folder: Path, download: Callable[[Progress], None] | None) -> Iterator[ServerInfo]:
    if found := find_running(folder):
        yield found
        return
    with running(folder, progress=download) as server:
        yield server


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
